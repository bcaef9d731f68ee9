// Calls that change shapes, or make tensors from sizes.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "worker/export/onnx_calls.h"

namespace medley::worker {
namespace {

using exported::ScalarType;
using exported::SymInt;
using exported::TensorMeta;

void ToResultSizes(OnnxConversion& to) { to.Set(to.Reshape(to.Value("self"), to.Result().sizes)); }

// The elements of `order` exchanged.
void Exchange(OnnxConversion& to, int64_t a, int64_t b) {
  const int64_t rank = to.Rank("self");
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  a = to.Axis(a, rank);
  b = to.Axis(b, rank);
  if (a < 0 || b < 0 || a >= rank || b >= rank) return to.Refuse("an axis is out of range");
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  to.Set(to.Add("Transpose", {to.Value("self")}, {{"perm", order}}));
}

void Transpose(OnnxConversion& to) { Exchange(to, to.Int("dim0", 0), to.Int("dim1", 1)); }

void T(OnnxConversion& to) {
  if (to.Rank("self") < 2) return to.Set(to.Value("self"));
  Exchange(to, -2, -1);
}

void Permute(OnnxConversion& to) {
  std::vector<int64_t> order = to.Ints("dims");
  for (int64_t& axis : order) axis = to.Axis(axis, to.Rank("self"));
  to.Set(to.Add("Transpose", {to.Value("self")}, {{"perm", order}}));
}

void Expand(OnnxConversion& to) { to.Set(to.Add("Expand", {to.Value("self"), to.Sizes(to.Result().sizes, false)})); }

void Repeat(OnnxConversion& to) {
  const std::vector<int64_t> repeats = to.Ints("repeats");
  std::vector<SymInt> sizes = to.MetaOf("self").sizes;
  while (sizes.size() < repeats.size()) sizes.insert(sizes.begin(), SymInt{.value = 1});
  to.Set(to.Add("Tile", {to.Reshape(to.Value("self"), sizes), to.Constant(repeats)}));
}

std::string Part(OnnxConversion& to, const std::string& value, int64_t axis, int64_t first, int64_t end, int64_t step) {
  return to.Add("Slice", {value, to.Constant({first}), to.Constant({end}), to.Constant({axis}), to.Constant({step})});
}

void Slice(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  // The end of an axis may be the number of its samples: then nothing is cut off.
  const std::string end_name = to.NameOf("end");
  int64_t end = std::numeric_limits<int64_t>::max();
  if (const auto number = to.program().numbers.find(end_name); number != to.program().numbers.end()) {
    const std::vector<SymInt>& sizes = to.MetaOf("self").sizes;
    const bool whole = axis < std::ssize(sizes) && sizes[static_cast<size_t>(axis)] == number->second;
    if (!whole) end = to.Fixed(number->second);
  } else {
    end = to.Int("end", end);
  }
  to.Set(Part(to, to.Value("self"), axis, to.Int("start", 0), end, to.Int("step", 1)));
}

void Narrow(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  const int64_t first = to.Int("start", 0);
  to.Set(Part(to, to.Value("self"), axis, first, first + to.Int("length", 0), 1));
}

void Select(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  const std::string index = to.Scalar(static_cast<double>(to.Int("index", 0)), ScalarType::kInt64);
  to.Set(to.Add("Gather", {to.Value("self"), index}, {{"axis", axis}}));
}

// All results are parts of the argument along an axis.
void Split(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  const std::string value = to.Value("self");
  int64_t first = 0;
  for (size_t i = 0; i < to.node().outputs.size(); ++i) {
    const std::string& output = to.node().outputs[i];
    if (output.empty()) return to.Refuse("the sizes of a result are not known");
    const std::vector<SymInt>& sizes = to.Meta(output).sizes;
    if (axis >= std::ssize(sizes)) return to.Refuse("an axis is out of range");
    const int64_t size = to.Fixed(sizes[static_cast<size_t>(axis)]);
    to.SetAt(i, Part(to, value, axis, first, first + size, 1));
    first += size;
  }
}

void Unbind(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  const std::string value = to.Value("self");
  for (size_t i = 0; i < to.node().outputs.size(); ++i) {
    const std::string index = to.Scalar(static_cast<double>(i), ScalarType::kInt64);
    to.SetAt(i, to.Add("Gather", {value, index}, {{"axis", axis}}));
  }
}

void Cat(OnnxConversion& to) {
  std::vector<std::string> parts;
  for (const std::string& value : to.ValuesOf("tensors")) {
    const TensorMeta& meta = to.Meta(value);
    if (meta.sizes.size() == 1 && meta.sizes[0] == SymInt{} && to.Result().sizes.size() > 1) continue;  // empty
    parts.push_back(to.Cast(to.Named(value), meta.type, to.Result().type));
  }
  to.Set(to.Add("Concat", parts, {{"axis", to.Axis(to.Int("dim", 0), std::ssize(to.Result().sizes))}}));
}

void Stack(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), std::ssize(to.Result().sizes));
  std::vector<std::string> parts;
  for (const std::string& value : to.ValuesOf("tensors")) {
    parts.push_back(to.Add("Unsqueeze", {to.Named(value), to.Constant({axis})}));
  }
  to.Set(to.Add("Concat", parts, {{"axis", axis}}));
}

void Fill(OnnxConversion& to, double value) {
  to.Set(to.Add("Expand", {to.Scalar(value, to.Result().type), to.Sizes(to.Result().sizes, false)}));
}

void Full(OnnxConversion& to) {
  Fill(to, to.Has("fill_value") ? to.Number("fill_value", 0)
           : to.Has("value")    ? to.Number("value", 0)
                                : to.Number("s", 0));
}
void Zeros(OnnxConversion& to) { Fill(to, 0); }
void Ones(OnnxConversion& to) { Fill(to, 1); }

void Arange(OnnxConversion& to) {
  const TensorMeta& meta = to.Result();
  if (meta.sizes.size() != 1) return to.Refuse("its result has no single axis");
  const double start = to.Number("start", 0), step = to.Number("step", 1);
  if (meta.type == ScalarType::kInt64) {
    // As many numbers as the result has, whatever the end depends on.
    const std::string count = to.Add("Squeeze", {to.Sizes(meta.sizes, false), to.Constant({0})});
    const std::string range = to.Add("Range", {to.Scalar(0, meta.type), count, to.Scalar(1, meta.type)});
    const std::string scaled = to.Add("Mul", {range, to.Scalar(step, meta.type)});
    return to.Set(to.Add("Add", {scaled, to.Scalar(start, meta.type)}));
  }
  const std::string count = to.Add("Squeeze", {to.Sizes(meta.sizes, false), to.Constant({0})});
  const std::string range =
      to.Add("Range", {to.Scalar(0, ScalarType::kInt64), count, to.Scalar(1, ScalarType::kInt64)});
  const std::string scaled = to.Add("Mul", {to.Cast(range, ScalarType::kInt64, meta.type), to.Scalar(step, meta.type)});
  to.Set(to.Add("Add", {scaled, to.Scalar(start, meta.type)}));
}

template <int upper>
void Triangle(OnnxConversion& to) {
  const ScalarType type = to.MetaOf("self").type;
  std::string value = to.Value("self");
  const bool cast = type == ScalarType::kBool;  // which not every runtime has
  if (cast) value = to.Cast(value, type, ScalarType::kInt64);
  value = to.Add("Trilu", {value, to.Scalar(static_cast<double>(to.Int("diagonal", 0)), ScalarType::kInt64)},
                 {{"upper", int64_t{upper}}});
  to.Set(cast ? to.Cast(value, ScalarType::kInt64, type) : value);
}

}  // namespace

OnnxConverter FindOnnxShapeConverter(std::string_view call) {
  static const std::map<std::string_view, OnnxConverter> kKnown = {
      {"view", ToResultSizes},
      {"reshape", ToResultSizes},
      {"_unsafe_view", ToResultSizes},
      {"flatten", ToResultSizes},
      {"unflatten", ToResultSizes},
      {"view_as", ToResultSizes},
      {"reshape_as", ToResultSizes},
      {"ravel", ToResultSizes},
      {"squeeze", ToResultSizes},
      {"unsqueeze", ToResultSizes},
      {"transpose", Transpose},
      {"swapdims", Transpose},
      {"t", T},
      {"mT", T},
      {"permute", Permute},
      {"expand", Expand},
      {"expand_as", Expand},
      {"broadcast_to", Expand},
      {"repeat", Repeat},
      {"slice", Slice},
      {"narrow", Narrow},
      {"select", Select},
      {"split", Split},
      {"chunk", Split},
      {"split_with_sizes", Split},
      {"unsafe_split", Split},
      {"unsafe_chunk", Split},
      {"tensor_split", Split},
      {"unbind", Unbind},
      {"cat", Cat},
      {"concat", Cat},
      {"concatenate", Cat},
      {"stack", Stack},
      {"full", Full},
      {"new_full", Full},
      {"full_like", Full},
      {"scalar_tensor", Full},
      {"zeros", Zeros},
      {"new_zeros", Zeros},
      {"zeros_like", Zeros},
      {"ones", Ones},
      {"new_ones", Ones},
      {"ones_like", Ones},
      {"arange", Arange},
      {"tril", Triangle<0>},
      {"triu", Triangle<1>},
  };
  const auto found = kKnown.find(call);
  return found == kKnown.end() ? nullptr : found->second;
}

}  // namespace medley::worker
