#include "worker/export/onnx_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "worker/cut/expression.h"
#include "worker/cut/uses.h"
#include "worker/export/onnx.h"
#include "worker/export/onnx_calls.h"
#include "worker/export/read_program.h"
#include "worker/exported/archive.h"

namespace medley::worker {
namespace {

using exported::Node;
using exported::ScalarType;
using exported::SymInt;
using exported::TensorMeta;

constexpr int kProgramOpset = 17;
constexpr size_t kMostBytes = (size_t{1} << 31) - (size_t{1} << 20);

std::string Where(const Node& node) {
  std::string text = node.target;
  if (!node.module_path.empty()) text += fmt::format(" of module '{}'", node.module_path);
  if (!node.source.empty()) text += fmt::format(" ({})", node.source);
  return text;
}

// "relu_" -> "relu"; "__and__" stays.
std::string_view CallWithoutPlace(const Node& node) {
  std::string_view call = cut::CallOf(node);
  if (cut::InPlace(node) && call.ends_with('_')) call.remove_suffix(1);
  return call;
}

// The elements one after the other.
std::string Contiguous(const exported::StoredTensor& stored) {
  const size_t bytes = exported::BytesOf(stored.type);
  int64_t count = 1;
  for (const int64_t size : stored.sizes) count *= size;
  std::string out(static_cast<size_t>(count) * bytes, '\0');
  std::vector<int64_t> at(stored.sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = stored.offset;
    for (size_t axis = 0; axis < at.size(); ++axis) from += at[axis] * stored.strides[axis];
    std::memcpy(out.data() + static_cast<size_t>(i) * bytes, stored.bytes.data() + static_cast<size_t>(from) * bytes,
                bytes);
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < stored.sizes[axis]) break;
      at[axis] = 0;
    }
  }
  return out;
}

// What of the program the result needs, and whether calls that overwrite memory can be said without.
class Needed {
 public:
  Needed(const exported::Program& program, const std::string& result) : values_{result} {
    nodes_.assign(program.nodes.size(), false);
    for (size_t i = program.nodes.size(); i-- > 0;) {
      const Node& node = program.nodes[i];
      if (cut::IsAssertion(node)) continue;
      const auto wanted = [&](const std::string& value) { return values_.contains(value); };
      bool needed = std::ranges::any_of(node.outputs, wanted);
      if (cut::InPlace(node) && !node.inputs.empty()) {
        cut::ForEachUse(node.inputs.front().value, [&](const std::string& value) { needed = needed || wanted(value); });
      }
      if (!needed) continue;
      nodes_[i] = true;
      cut::ForEachUse(node, [&](const std::string& value) { values_.insert(value); });
    }
  }
  bool Uses(size_t i) const { return nodes_[i]; }
  bool Value(const std::string& value) const { return values_.contains(value); }

 private:
  std::set<std::string> values_;
  std::vector<bool> nodes_;
};

// Refuses a call in place whose memory another value shares that is used later: in ONNX values do not change.
absl::Status CheckViews(const exported::Program& program, const Needed& needed) {
  std::map<std::string, std::string> root;  // of values that share memory
  std::map<std::string, size_t> last;       // use
  const auto root_of = [&](const std::string& value) {
    const auto found = root.find(value);
    return found == root.end() ? value : found->second;
  };
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    if (needed.Uses(i)) cut::ForEachUse(program.nodes[i], [&](const std::string& value) { last[value] = i; });
  }
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (!needed.Uses(i) || node.inputs.empty()) continue;
    const auto* first = std::get_if<exported::ValueRef>(&node.inputs.front().value);
    if (first == nullptr) continue;
    if (cut::InPlace(node)) {
      for (const auto& [value, use] : last) {
        if (use <= i || value == first->name || root_of(value) != root_of(first->name)) continue;
        const bool result = std::ranges::find(node.outputs, value) != node.outputs.end();
        if (!result && (root.contains(value) || value == root_of(first->name))) {
          return base::Unimplemented("{} changes memory that the value '{}' shares, which ONNX cannot say", Where(node),
                                     value);
        }
      }
    }
    if (!cut::InPlace(node) && !cut::IsView(node)) continue;
    for (const std::string& output : node.outputs) root[output] = root_of(first->name);
  }
  return absl::OkStatus();
}

class ProgramConverter {
 public:
  ProgramConverter(const LoadedModel& model, const LoadedProgram& loaded)
      : model_(model),
        loaded_(loaded),
        cut_(*loaded.graph.imported->cut),
        program_(*cut_.program),
        graph_(kProgramOpset),
        needed_(program_, cut_.result),
        conversion_(cut_, graph_) {}

  absl::StatusOr<std::string> Convert() {
    MEDLEY_RETURN_IF_ERROR(CheckViews(program_, needed_));
    for (const exported::Input& input : program_.inputs) MEDLEY_RETURN_IF_ERROR(AddInput(input));
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (needed_.Uses(i)) MEDLEY_RETURN_IF_ERROR(AddCall(program_.nodes[i]));
      if (graph_.bytes() > kMostBytes) return base::ResourceExhausted("the model is larger than the 2 GiB of ONNX");
    }
    AddOnnxOutput(model_.model, Result(), graph_);
    MEDLEY_RETURN_IF_ERROR(conversion_.status());
    graph_.Metadata("medley.schema", SchemaJson(model_.model));
    return graph_.Finish("model");
  }

 private:
  absl::Status AddInput(const exported::Input& input) {
    const TensorMeta* meta = nullptr;
    if (const auto found = program_.tensors.find(input.value); found != program_.tensors.end()) meta = &found->second;
    if (input.kind == exported::InputKind::kUser) {
      if (meta == nullptr || meta->sizes.empty()) {
        return base::Unimplemented("the input '{}' is no tensor with samples", input.name);
      }
      std::vector<int64_t> shape;
      for (size_t i = 1; i < meta->sizes.size(); ++i) shape.push_back(meta->sizes[i].value);
      graph_.Input(input.name, OnnxTypeOf(meta->type), shape);
      conversion_.Define(input.value, input.name);
      conversion_.SetBatchOf(input.name);
      return absl::OkStatus();
    }
    if (!needed_.Value(input.value)) return absl::OkStatus();
    const auto stored = program_.stored.find(input.name);
    if (stored == program_.stored.end()) return base::InvalidArgument("the archive has no tensor '{}'", input.name);
    const int type = OnnxTypeOf(stored->second.type);
    if (type == 0) {
      return base::Unimplemented("the tensor '{}' is of type {}, which ONNX files of Medley do not have", input.name,
                                 exported::NameOf(stored->second.type));
    }
    conversion_.Define(input.value, input.name);
    const auto first = cut_.shared.find(input.name);
    const std::string& owner = first == cut_.shared.end() ? input.name : first->second;
    if (const auto trained = loaded_.weights.find(owner);
        trained != loaded_.weights.end() && stored->second.type == ScalarType::kFloat32) {
      graph_.Tensor(input.name, type, stored->second.sizes,
                    {reinterpret_cast<const char*>(trained->second.data()), trained->second.size() * sizeof(float)});
      return absl::OkStatus();
    }
    MEDLEY_RETURN_IF_ERROR(exported::CheckContents(stored->second, input.name));
    graph_.Tensor(input.name, type, stored->second.sizes, Contiguous(stored->second));
    return absl::OkStatus();
  }

  absl::Status AddCall(const Node& node) {
    if (program_.numbers.contains(node.outputs.empty() ? "" : node.outputs.front())) return absl::OkStatus();
    const OnnxConverter convert = FindOnnxConverter(CallWithoutPlace(node));
    if (convert == nullptr) return base::Unimplemented("ONNX: the operator {} is not known", Where(node));
    conversion_.Begin(node);
    for (const std::string& output : node.outputs) {
      if (output.empty() || !needed_.Value(output)) continue;
      const auto found = program_.tensors.find(output);
      if (found == program_.tensors.end()) continue;
      if (OnnxTypeOf(found->second.type) == 0) conversion_.Refuse("its result is of a type that ONNX lacks");
    }
    convert(conversion_);
    if (!conversion_.status().ok()) {
      return base::Unimplemented("ONNX: {}: {}", Where(node), base::Message(conversion_.status()));
    }
    // The argument of a call in place is from now on its result.
    if (cut::InPlace(node) && !node.outputs.empty()) {
      cut::ForEachUse(node.inputs.front().value, [&](const std::string& value) {
        conversion_.Define(value, conversion_.Named(node.outputs.front()));
      });
    }
    return absl::OkStatus();
  }

  // Samples x outputs.
  std::string Result() {
    std::string x = conversion_.Named(cut_.result);
    const cut::Crossing& crossing = cut_.crossings[static_cast<size_t>(cut_.operations.back().crossings.front())];
    const auto rank = std::ssize(program_.tensors.at(cut_.result).sizes);
    if (crossing.axis > 0) {
      std::vector<int64_t> order = {crossing.axis};
      for (int64_t axis = 0; axis < rank; ++axis) {
        if (axis != crossing.axis) order.push_back(axis);
      }
      x = conversion_.Add("Transpose", {x}, {{"perm", order}});
    }
    if (crossing.type != ScalarType::kFloat32) x = conversion_.Cast(x, crossing.type, ScalarType::kFloat32);
    return conversion_.Add("Reshape", {x, conversion_.Constant({-1, loaded_.graph.Outputs()})});
  }

  const LoadedModel& model_;
  const LoadedProgram& loaded_;
  const cut::Cut& cut_;
  const exported::Program& program_;
  OnnxWriter graph_;
  const Needed needed_;
  OnnxConversion conversion_;
};

}  // namespace

int OnnxTypeOf(ScalarType type) {
  switch (type) {
    case ScalarType::kFloat32:
      return kOnnxFloat;
    case ScalarType::kUInt8:
      return 2;
    case ScalarType::kInt8:
      return 3;
    case ScalarType::kInt16:
      return 5;
    case ScalarType::kInt32:
      return kOnnxInt32;
    case ScalarType::kInt64:
      return kOnnxInt64;
    case ScalarType::kBool:
      return kOnnxBool;
    case ScalarType::kFloat64:
      return 11;
    default:
      return 0;
  }
}

void OnnxConversion::Refuse(const std::string& why) {
  if (status_.ok()) status_ = base::Unimplemented("{}", why);
}

const exported::Argument* OnnxConversion::Find(std::string_view name) const {
  const exported::Argument* found = cut::ArgumentOf(*node_, name);
  return found == nullptr || std::holds_alternative<exported::None>(*found) ? nullptr : found;
}

bool OnnxConversion::Has(std::string_view name) const { return Find(name) != nullptr; }

std::string OnnxConversion::NameOf(std::string_view name) const {
  const exported::Argument* found = Find(name);
  const auto* ref = found == nullptr ? nullptr : std::get_if<exported::ValueRef>(found);
  return ref == nullptr ? "" : ref->name;
}

std::string OnnxConversion::Named(const std::string& value) {
  const auto found = names_.find(value);
  if (found != names_.end()) return found->second;
  Refuse(fmt::format("the value '{}' is a number that depends on the batch", value));
  return "";
}

const TensorMeta& OnnxConversion::Meta(const std::string& value) {
  static const TensorMeta kNone;
  const auto found = program_.tensors.find(value);
  if (found != program_.tensors.end()) return found->second;
  Refuse("an argument is not a tensor");
  return kNone;
}

std::string OnnxConversion::Value(std::string_view name) { return Named(NameOf(name)); }

std::string OnnxConversion::Value(std::string_view name, ScalarType type) {
  if (const std::string value = NameOf(name); program_.tensors.contains(value)) {
    return Cast(Named(value), Meta(value).type, type);
  }
  return Scalar(Number(name, 0), type);
}

std::vector<std::string> OnnxConversion::ValuesOf(std::string_view name) {
  const exported::Argument* found = Find(name);
  std::vector<std::string> values;
  if (found != nullptr) cut::ForEachUse(*found, [&](const std::string& value) { values.push_back(value); });
  return values;
}

int64_t OnnxConversion::Int(std::string_view name, int64_t otherwise) {
  const exported::Argument* found = Find(name);
  if (found == nullptr) return otherwise;
  if (const auto* value = std::get_if<int64_t>(found)) return *value;
  if (const auto* ref = std::get_if<exported::ValueRef>(found)) {
    const auto number = program_.numbers.find(ref->name);
    if (number != program_.numbers.end()) return Fixed(number->second);
  }
  Refuse(fmt::format("the argument '{}' is not a whole number", name));
  return otherwise;
}

double OnnxConversion::Number(std::string_view name, double otherwise) {
  const exported::Argument* found = Find(name);
  if (found == nullptr) return otherwise;
  if (const auto* value = std::get_if<double>(found)) return *value;
  if (const auto* value = std::get_if<bool>(found)) return *value ? 1 : 0;
  return static_cast<double>(Int(name, 0));
}

bool OnnxConversion::Bool(std::string_view name, bool otherwise) {
  const exported::Argument* found = Find(name);
  if (found == nullptr) return otherwise;
  if (const auto* value = std::get_if<bool>(found)) return *value;
  return Int(name, 0) != 0;
}

std::string OnnxConversion::Text(std::string_view name, std::string otherwise) {
  const exported::Argument* found = Find(name);
  if (found == nullptr) return otherwise;
  if (const auto* value = std::get_if<std::string>(found)) return *value;
  Refuse(fmt::format("the argument '{}' is not text", name));
  return otherwise;
}

std::vector<int64_t> OnnxConversion::Ints(std::string_view name) {
  const exported::Argument* found = Find(name);
  if (found == nullptr) return {};
  if (const auto* values = std::get_if<std::vector<int64_t>>(found)) return *values;
  if (std::holds_alternative<int64_t>(*found)) return {std::get<int64_t>(*found)};
  std::vector<int64_t> out;
  if (const auto* items = std::get_if<std::vector<exported::IntOrRef>>(found)) {
    for (const exported::IntOrRef& item : *items) {
      if (const auto* value = std::get_if<int64_t>(&item)) {
        out.push_back(*value);
      } else if (const auto number = program_.numbers.find(std::get<exported::ValueRef>(item).name);
                 number != program_.numbers.end()) {
        out.push_back(Fixed(number->second));
      }
    }
    return out;
  }
  Refuse(fmt::format("the argument '{}' is not a list of whole numbers", name));
  return out;
}

int64_t OnnxConversion::Fixed(const SymInt& size) {
  if (!size.expression.empty()) Refuse(fmt::format("the size {} depends on the batch", size.expression));
  return size.value;
}

std::string OnnxConversion::Samples() {
  if (!samples_.empty()) return samples_;
  const std::string shape = Add("Shape", {batch_of_});
  samples_ = Add("Slice", {shape, Constant({0}), Constant({1})});
  return samples_;
}

std::string OnnxConversion::Sizes(const std::vector<SymInt>& sizes, bool reshape) {
  const auto depends = [](const SymInt& size) { return !size.expression.empty(); };
  const auto count = std::ranges::count_if(sizes, depends);
  if (count == 0 || (reshape && count == 1)) {
    std::vector<int64_t> fixed;
    for (const SymInt& size : sizes) fixed.push_back(depends(size) ? -1 : size.value);
    return Constant(fixed);
  }
  std::vector<std::string> parts;
  for (const SymInt& size : sizes) {
    if (!depends(size)) {
      parts.push_back(Constant({size.value}));
      continue;
    }
    // A line in the number of samples.
    std::vector<int64_t> at;
    const auto expression = cut::Expression::Parse(size.expression);
    for (const int64_t samples : {2, 3, 7}) {
      const auto value = expression.ok() ? expression->At({{cut_.batch, samples}}) : expression.status();
      if (value.ok()) at.push_back(*value);
    }
    if (at.size() != 3 || at[2] - at[0] != 5 * (at[1] - at[0])) {
      Refuse(fmt::format("the size {} does not grow with the batch", size.expression));
      return "";
    }
    const int64_t each = at[1] - at[0];
    parts.push_back(Add("Add", {Add("Mul", {Samples(), Constant({each})}), Constant({at[0] - 2 * each})}));
  }
  return Add("Concat", parts, {{"axis", int64_t{0}}});
}

std::string OnnxConversion::New() { return fmt::format("v{}", count_++); }

std::string OnnxConversion::Add(std::string_view type, const std::vector<std::string>& inputs,
                                std::initializer_list<OnnxAttribute> attributes) {
  return graph_.Node(type, std::span<const std::string>(inputs), New(), attributes);
}

std::vector<std::string> OnnxConversion::AddSeveral(std::string_view type, const std::vector<std::string>& inputs,
                                                    size_t outputs, const std::vector<OnnxAttribute>& attributes) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(New());
  graph_.Nodes(type, inputs, names, attributes);
  return names;
}

std::string OnnxConversion::Constant(const std::vector<int64_t>& values) {
  const std::string name = New();
  graph_.Ints(name, values);
  return name;
}

std::string OnnxConversion::Scalar(double value, ScalarType type) {
  const std::string name = New();
  const auto single = static_cast<float>(value);
  // Infinity has no whole number, and none is needed.
  const auto whole = static_cast<int64_t>(std::clamp(value, -0x1p62, 0x1p62));
  const auto text = [](const auto& number) {
    return std::string_view(reinterpret_cast<const char*>(&number), sizeof number);
  };
  if (type == ScalarType::kFloat32) {
    graph_.Tensor(name, kOnnxFloat, {}, text(single));
    return name;
  }
  graph_.Tensor(name, kOnnxInt64, {}, text(whole));
  if (type == ScalarType::kInt64) return name;
  if (type != ScalarType::kFloat64) return Cast(name, ScalarType::kInt64, type);
  const std::string precise = New();
  graph_.Tensor(precise, OnnxTypeOf(type), {}, text(value));
  return precise;
}

std::string OnnxConversion::Cast(const std::string& value, ScalarType from, ScalarType to) {
  if (from == to) return value;
  return Add("Cast", {value}, {{"to", static_cast<int64_t>(OnnxTypeOf(to))}});
}

void OnnxConversion::SetAt(size_t output, std::string value) {
  if (output >= node_->outputs.size()) return Refuse("it has another number of results");
  if (!node_->outputs[output].empty()) names_[node_->outputs[output]] = std::move(value);
}

absl::StatusOr<std::string> ProgramToOnnx(const LoadedModel& model) {
  MEDLEY_ASSIGN_OR_RETURN(const LoadedProgram loaded, ReadExportedProgram(model));
  return ProgramConverter(model, loaded).Convert();
}

}  // namespace medley::worker
