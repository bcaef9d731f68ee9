#include "worker/export/onnx_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

namespace medley::worker {
namespace {

using exported::ScalarType;
using exported::SymInt;

constexpr ScalarType kSingle = ScalarType::kFloat32;

// --- Elementwise.

void Same(OnnxConversion& to) { to.Set(to.Value(to.Has("self") ? "self" : "input")); }

// Operators with one tensor and no other argument.
const std::map<std::string_view, std::string_view>& Unary() {
  static const std::map<std::string_view, std::string_view> kUnary = {
      {"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"special_expit", "Sigmoid"},
      {"tanh", "Tanh"}, {"exp", "Exp"},         {"log", "Log"},
      {"sqrt", "Sqrt"}, {"neg", "Neg"},         {"abs", "Abs"},
      {"erf", "Erf"},   {"special_erf", "Erf"}, {"sin", "Sin"},
      {"cos", "Cos"},   {"tan", "Tan"},         {"floor", "Floor"},
      {"ceil", "Ceil"}, {"round", "Round"},     {"reciprocal", "Reciprocal"},
      {"sign", "Sign"}, {"logical_not", "Not"}, {"selu", "Selu"},
      {"asin", "Asin"}, {"acos", "Acos"},       {"atan", "Atan"},
      {"sinh", "Sinh"}, {"cosh", "Cosh"},
  };
  return kUnary;
}

void AddUnary(OnnxConversion& to) {
  std::string_view call = to.node().target;  // "aten.relu_.default"
  call.remove_prefix(call.find('.') + 1);
  call = call.substr(0, call.find('.'));
  if (!Unary().contains(call) && call.ends_with('_')) call.remove_suffix(1);
  to.Set(to.Add(Unary().at(call), {to.Value("self", to.Result().type)}));
}

void Convert(OnnxConversion& to) { to.Set(to.Value("self", to.Result().type)); }

void Rsqrt(OnnxConversion& to) { to.Set(to.Add("Reciprocal", {to.Add("Sqrt", {to.Value("self", kSingle)})})); }
void Square(OnnxConversion& to) {
  const std::string x = to.Value("self");
  to.Set(to.Add("Mul", {x, x}));
}
void Log1p(OnnxConversion& to) { to.Set(to.Add("Log", {to.With("Add", to.Value("self", to.Result().type), 1)})); }
void Expm1(OnnxConversion& to) { to.Set(to.With("Sub", to.Add("Exp", {to.Value("self", to.Result().type)}), 1)); }

void Silu(OnnxConversion& to) {
  const std::string x = to.Value("self");
  to.Set(to.Add("Mul", {x, to.Add("Sigmoid", {x})}));
}

void Gelu(OnnxConversion& to) {
  const std::string x = to.Value("self");
  std::string inner;
  if (to.Text("approximate", "none") == "tanh") {
    const std::string cube = to.Add("Mul", {x, to.Add("Mul", {x, x})});
    const std::string sum = to.Add("Add", {x, to.With("Mul", cube, 0.044715)});
    inner = to.Add("Tanh", {to.With("Mul", sum, std::sqrt(2 / std::numbers::pi))});
  } else {
    inner = to.Add("Erf", {to.With("Mul", x, std::numbers::sqrt2 / 2)});
  }
  to.Set(to.Add("Mul", {to.With("Mul", x, 0.5), to.With("Add", inner, 1)}));
}

void Softplus(OnnxConversion& to) {
  if (to.Number("beta", 1) != 1) return to.Refuse("beta must be 1");
  to.Set(to.Add("Softplus", {to.Value("self")}));
}
void Mish(OnnxConversion& to) {
  const std::string x = to.Value("self");
  to.Set(to.Add("Mul", {x, to.Add("Tanh", {to.Add("Softplus", {x})})}));
}
void LogSigmoid(OnnxConversion& to) {
  to.Set(to.Add("Neg", {to.Add("Softplus", {to.Add("Neg", {to.Value("self")})})}));
}
void Elu(OnnxConversion& to) {
  if (to.Number("scale", 1) != 1 || to.Number("input_scale", 1) != 1) return to.Refuse("its scales must be 1");
  to.Set(to.Add("Elu", {to.Value("self")}, {{"alpha", static_cast<float>(to.Number("alpha", 1))}}));
}
void LeakyRelu(OnnxConversion& to) {
  const auto slope = static_cast<float>(to.Number("negative_slope", 0.01));
  to.Set(to.Add("LeakyRelu", {to.Value("self")}, {{"alpha", slope}}));
}
std::string HardSigmoidOf(OnnxConversion& to, const std::string& x) {
  return to.Add("HardSigmoid", {x}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
}
void HardSigmoid(OnnxConversion& to) { to.Set(HardSigmoidOf(to, to.Value("self"))); }
void HardSwish(OnnxConversion& to) {
  const std::string x = to.Value("self");
  to.Set(to.Add("Mul", {x, HardSigmoidOf(to, x)}));
}
void PRelu(OnnxConversion& to) {
  std::vector<SymInt> sizes = to.MetaOf("weight").sizes;
  if (sizes.size() == 1)
    sizes.resize(std::max<size_t>(1, static_cast<size_t>(to.Rank("self")) - 1), SymInt{.value = 1});
  to.Set(to.Add("PRelu", {to.Value("self"), to.Reshape(to.Value("weight"), sizes)}));
}

void Bounds(OnnxConversion& to, std::string_view least, std::string_view most) {
  const ScalarType type = to.Result().type;
  std::string x = to.Value("self", type);
  if (to.Has(least)) x = to.Add("Max", {x, to.Value(least, type)});
  if (to.Has(most)) x = to.Add("Min", {x, to.Value(most, type)});
  to.Set(x);
}
void Clamp(OnnxConversion& to) { Bounds(to, "min", "max"); }
void Hardtanh(OnnxConversion& to) {
  std::string x = to.With("Max", to.Value("self"), to.Number("min_val", -1));
  to.Set(to.With("Min", x, to.Number("max_val", 1)));
}
void Relu6(OnnxConversion& to) { to.Set(to.With("Min", to.With("Max", to.Value("self"), 0), 6)); }

template <typename Combine>
void Arithmetic(OnnxConversion& to, Combine combine) {
  const ScalarType type = to.Result().type;
  if (type == ScalarType::kBool) return to.Refuse("its result is bool");
  to.Set(combine(to.Value("self", type), to.Value("other", type)));
}
std::string Scaled(OnnxConversion& to, const std::string& x) {
  const double alpha = to.Number("alpha", 1);
  return alpha == 1 ? x : to.With("Mul", x, alpha);
}
void Plus(OnnxConversion& to) {
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Add", {a, Scaled(to, b)}); });
}
void Minus(OnnxConversion& to) {
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Sub", {a, Scaled(to, b)}); });
}
void ReverseMinus(OnnxConversion& to) {
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Sub", {b, Scaled(to, a)}); });
}
void Times(OnnxConversion& to) {
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Mul", {a, b}); });
}
void Divide(OnnxConversion& to) {
  if (to.Has("rounding_mode")) return to.Refuse("rounded divisions are not known");
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Div", {a, b}); });
}
void Greatest(OnnxConversion& to) {
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Max", {a, b}); });
}
void Least(OnnxConversion& to) {
  Arithmetic(to, [&](const std::string& a, const std::string& b) { return to.Add("Min", {a, b}); });
}
void Power(OnnxConversion& to) {
  const ScalarType type = to.Result().type;
  to.Set(to.Add("Pow", {to.Value("self", type), to.Value("exponent", type)}));
}

// The type in which two arguments are compared.
ScalarType Common(OnnxConversion& to, std::string_view a, std::string_view b) {
  for (const std::string_view name : {a, b}) {
    const std::string value = to.NameOf(name);
    const auto meta = to.program().tensors.find(value);
    if (meta == to.program().tensors.end()) {
      const exported::Argument* number = nullptr;
      for (const exported::NamedArgument& argument : to.node().inputs) {
        if (argument.name == name) number = &argument.value;
      }
      if (number != nullptr && std::holds_alternative<double>(*number)) return kSingle;
    } else if (meta->second.type == kSingle || meta->second.type == ScalarType::kFloat64) {
      return meta->second.type;
    }
  }
  return ScalarType::kInt64;
}
template <bool negated>
void Compare(OnnxConversion& to, std::string_view type) {
  const ScalarType common = Common(to, "self", "other");
  const std::string x = to.Add(type, {to.Value("self", common), to.Value("other", common)});
  to.Set(negated ? to.Add("Not", {x}) : x);
}
void Eq(OnnxConversion& to) { Compare<false>(to, "Equal"); }
void Ne(OnnxConversion& to) { Compare<true>(to, "Equal"); }
void Lt(OnnxConversion& to) { Compare<false>(to, "Less"); }
void Le(OnnxConversion& to) { Compare<true>(to, "Greater"); }
void Gt(OnnxConversion& to) { Compare<false>(to, "Greater"); }
void Ge(OnnxConversion& to) { Compare<true>(to, "Less"); }
void And(OnnxConversion& to) {
  to.Set(to.Add("And", {to.Value("self", ScalarType::kBool), to.Value("other", ScalarType::kBool)}));
}
void Or(OnnxConversion& to) {
  to.Set(to.Add("Or", {to.Value("self", ScalarType::kBool), to.Value("other", ScalarType::kBool)}));
}
void BitAnd(OnnxConversion& to) { to.Result().type == ScalarType::kBool ? And(to) : to.Refuse("bits of numbers"); }
void BitOr(OnnxConversion& to) { to.Result().type == ScalarType::kBool ? Or(to) : to.Refuse("bits of numbers"); }
void BitNot(OnnxConversion& to) {
  if (to.Result().type != ScalarType::kBool) return to.Refuse("bits of numbers");
  to.Set(to.Add("Not", {to.Value("self")}));
}
void Where(OnnxConversion& to) {
  const ScalarType type = to.Result().type;
  to.Set(to.Add("Where", {to.Value("condition", ScalarType::kBool), to.Value("self", type), to.Value("other", type)}));
}
void MaskedFill(OnnxConversion& to) {
  const ScalarType type = to.Result().type;
  to.Set(to.Add("Where", {to.Value("mask", ScalarType::kBool), to.Value("value", type), to.Value("self")}));
}

// --- Reductions.

std::vector<int64_t> Axes(OnnxConversion& to) {
  const int64_t rank = to.Rank("self");
  std::vector<int64_t> axes = to.Ints("dim");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = to.Axis(axis, rank);
  return axes;
}
int64_t Keep(OnnxConversion& to) { return to.Bool("keepdim", false) ? 1 : 0; }
void Reduce(OnnxConversion& to, std::string_view type) {
  to.Set(to.Add(type, {to.Value("self", to.Result().type)}, {{"axes", Axes(to)}, {"keepdims", Keep(to)}}));
}
void Mean(OnnxConversion& to) { Reduce(to, "ReduceMean"); }
void Amax(OnnxConversion& to) { Reduce(to, "ReduceMax"); }
void Amin(OnnxConversion& to) { Reduce(to, "ReduceMin"); }
void LogSumExp(OnnxConversion& to) { Reduce(to, "ReduceLogSumExp"); }
void Sum(OnnxConversion& to) {
  const std::string axes = to.Constant(Axes(to));
  to.Set(to.Add("ReduceSum", {to.Value("self", to.Result().type), axes}, {{"keepdims", Keep(to)}}));
}
void Argmax(OnnxConversion& to) {
  if (!to.Has("dim")) return to.Refuse("it needs an axis");
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  to.Set(to.Add("ArgMax", {to.Value("self")}, {{"axis", axis}, {"keepdims", Keep(to)}}));
}
void Cumsum(OnnxConversion& to) {
  const double axis = static_cast<double>(to.Axis(to.Int("dim", 0), to.Rank("self")));
  to.Set(to.Add("CumSum", {to.Value("self", to.Result().type), to.Scalar(axis, ScalarType::kInt64)}));
}
void Softmax(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", -1), to.Rank("self"));
  to.Set(to.Add("Softmax", {to.Value("self", to.Result().type)}, {{"axis", axis}}));
}
void LogSoftmax(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", -1), to.Rank("self"));
  to.Set(to.Add("LogSoftmax", {to.Value("self", to.Result().type)}, {{"axis", axis}}));
}

}  // namespace

OnnxConverter FindOnnxConverter(std::string_view call) {
  static const std::map<std::string_view, OnnxConverter> kKnown = {
      {"alias", Same},
      {"contiguous", Same},
      {"clone", Same},
      {"detach", Same},
      {"lift_fresh", Same},
      {"lift_fresh_copy", Same},
      {"dropout", Same},
      {"feature_dropout", Same},
      {"alpha_dropout", Same},
      {"feature_alpha_dropout", Same},
      {"native_dropout", Same},
      {"to", Convert},
      {"_to_copy", Convert},
      {"type_as", Convert},
      {"rsqrt", Rsqrt},
      {"square", Square},
      {"log1p", Log1p},
      {"expm1", Expm1},
      {"silu", Silu},
      {"gelu", Gelu},
      {"softplus", Softplus},
      {"mish", Mish},
      {"log_sigmoid", LogSigmoid},
      {"elu", Elu},
      {"leaky_relu", LeakyRelu},
      {"hardsigmoid", HardSigmoid},
      {"hardswish", HardSwish},
      {"prelu", PRelu},
      {"_prelu_kernel", PRelu},
      {"clamp", Clamp},
      {"clip", Clamp},
      {"clamp_min", Clamp},
      {"clamp_max", Clamp},
      {"hardtanh", Hardtanh},
      {"relu6", Relu6},
      {"add", Plus},
      {"sub", Minus},
      {"subtract", Minus},
      {"rsub", ReverseMinus},
      {"mul", Times},
      {"multiply", Times},
      {"div", Divide},
      {"divide", Divide},
      {"true_divide", Divide},
      {"maximum", Greatest},
      {"minimum", Least},
      {"pow", Power},
      {"eq", Eq},
      {"ne", Ne},
      {"not_equal", Ne},
      {"lt", Lt},
      {"less", Lt},
      {"le", Le},
      {"less_equal", Le},
      {"gt", Gt},
      {"greater", Gt},
      {"ge", Ge},
      {"greater_equal", Ge},
      {"logical_and", And},
      {"logical_or", Or},
      {"__and__", BitAnd},
      {"bitwise_and", BitAnd},
      {"__or__", BitOr},
      {"bitwise_or", BitOr},
      {"bitwise_not", BitNot},
      {"where", Where},
      {"masked_fill", MaskedFill},
      {"mean", Mean},
      {"amax", Amax},
      {"amin", Amin},
      {"logsumexp", LogSumExp},
      {"sum", Sum},
      {"argmax", Argmax},
      {"cumsum", Cumsum},
      {"softmax", Softmax},
      {"_softmax", Softmax},
      {"_safe_softmax", Softmax},
      {"special_softmax", Softmax},
      {"log_softmax", LogSoftmax},
      {"_log_softmax", LogSoftmax},
      {"special_log_softmax", LogSoftmax},
  };
  if (const auto found = kKnown.find(call); found != kKnown.end()) return found->second;
  if (Unary().contains(call)) return AddUnary;
  for (const auto find : {FindOnnxLayerConverter, FindOnnxRecurrentConverter}) {
    if (const OnnxConverter layer = find(call); layer != nullptr) return layer;
  }
  return FindOnnxShapeConverter(call);
}

}  // namespace medley::worker
