#include "worker/exported/program_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "worker/exported/pure_calls.h"

namespace medley::worker::exported {
namespace {

using Json = nlohmann::json;

constexpr int kNewestMajor = 8;
constexpr size_t kMostDimensions = 64;
constexpr int64_t kMostSize = int64_t{1} << 40;

// Reads fields; the first mistake stays.
class Fields {
 public:
  Fields(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  const Json* Find(const char* name) const {
    const auto found = json_.is_object() ? json_.find(name) : json_.end();
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  absl::StatusOr<const Json*> Get(const char* name) const {
    const Json* found = Find(name);
    if (found == nullptr) return base::InvalidArgument("{}: the field '{}' is missing", place_, name);
    return found;
  }
  absl::StatusOr<std::string> Text(const char* name) const {
    MEDLEY_ASSIGN_OR_RETURN(const Json* found, Get(name));
    if (!found->is_string()) return base::InvalidArgument("{}: the field '{}' is no text", place_, name);
    return found->get<std::string>();
  }
  absl::StatusOr<int64_t> Number(const char* name) const {
    MEDLEY_ASSIGN_OR_RETURN(const Json* found, Get(name));
    if (!found->is_number_integer())
      return base::InvalidArgument("{}: the field '{}' is no whole number", place_, name);
    return found->get<int64_t>();
  }
  absl::StatusOr<const Json*> List(const char* name) const {
    MEDLEY_ASSIGN_OR_RETURN(const Json* found, Get(name));
    if (!found->is_array()) return base::InvalidArgument("{}: the field '{}' is no list", place_, name);
    return found;
  }
  const std::string& place() const { return place_; }

 private:
  const Json& json_;
  const std::string place_;
};

// The one field of a union: {"as_int": 3} -> "as_int", 3.
absl::StatusOr<std::pair<std::string, const Json*>> UnionOf(const Json& json, const std::string& place) {
  if (!json.is_object() || json.size() != 1) return base::InvalidArgument("{}: it is no object with one field", place);
  return std::pair(json.begin().key(), &*json.begin());
}

absl::StatusOr<ScalarType> TypeOf(const Json& json, const std::string& place) {
  if (json.is_number_integer()) {
    const auto number = json.get<int64_t>();
    if (number >= static_cast<int64_t>(ScalarType::kUInt8) && number <= static_cast<int64_t>(ScalarType::kBFloat16)) {
      return static_cast<ScalarType>(number);
    }
  }
  return base::InvalidArgument("{}: the type {} of a tensor is not known", place, json.dump());
}

absl::StatusOr<SymInt> ParseSymInt(const Json& json, const std::string& place) {
  MEDLEY_ASSIGN_OR_RETURN(const auto found, UnionOf(json, place));
  const auto& [kind, value] = found;
  if (kind == "as_int" && value->is_number_integer()) return SymInt{value->get<int64_t>(), ""};
  if (kind == "as_expr") {
    MEDLEY_ASSIGN_OR_RETURN(std::string text, Fields(*value, place).Text("expr_str"));
    if (text.empty()) return base::InvalidArgument("{}: a size has an empty expression", place);
    return SymInt{0, std::move(text)};
  }
  return base::InvalidArgument("{}: the size {} is neither a number nor an expression", place, json.dump());
}

absl::StatusOr<TensorMeta> ParseMeta(const Json& json, const std::string& place) {
  const Fields fields(json, place);
  TensorMeta meta;
  MEDLEY_ASSIGN_OR_RETURN(const Json* type, fields.Get("dtype"));
  MEDLEY_ASSIGN_OR_RETURN(meta.type, TypeOf(*type, place));
  MEDLEY_ASSIGN_OR_RETURN(const Json* sizes, fields.List("sizes"));
  if (sizes->size() > kMostDimensions) return base::InvalidArgument("{}: it has {} dimensions", place, sizes->size());
  for (const Json& size : *sizes) {
    MEDLEY_ASSIGN_OR_RETURN(meta.sizes.emplace_back(), ParseSymInt(size, place));
    if (meta.sizes.back().value < 0 || meta.sizes.back().value > kMostSize) {
      return base::InvalidArgument("{}: the size {} is not possible", place, meta.sizes.back().value);
    }
  }
  const Json* gradient = fields.Find("requires_grad");
  meta.requires_grad = gradient != nullptr && gradient->is_boolean() && gradient->get<bool>();
  return meta;
}

class ProgramParser {
 public:
  ProgramParser(const Json& json, const ReadOptions& options) : json_(json), options_(options) {}

  absl::StatusOr<Program> Parse() {
    const Fields root(json_, "the program");
    MEDLEY_RETURN_IF_ERROR(ReadVersion(root));
    MEDLEY_RETURN_IF_ERROR(ReadRanges(root));
    MEDLEY_ASSIGN_OR_RETURN(const Json* module, root.Get("graph_module"));
    const Fields fields(*module, "graph_module");
    MEDLEY_ASSIGN_OR_RETURN(const Json* graph, fields.Get("graph"));
    MEDLEY_ASSIGN_OR_RETURN(const Json* signature, fields.Get("signature"));
    MEDLEY_RETURN_IF_ERROR(ReadValues(Fields(*graph, "graph")));
    MEDLEY_RETURN_IF_ERROR(ReadInputs(Fields(*signature, "signature")));
    MEDLEY_RETURN_IF_ERROR(ReadNodes(Fields(*graph, "graph")));
    MEDLEY_RETURN_IF_ERROR(ReadOutputs(Fields(*signature, "signature")));
    return std::move(out_);
  }

 private:
  absl::Status ReadVersion(const Fields& root);
  absl::Status ReadRanges(const Fields& root);
  absl::Status ReadValues(const Fields& graph);
  absl::Status ReadInputs(const Fields& signature);
  absl::Status ReadInput(const std::string& kind, const Json& spec);
  absl::Status ReadNodes(const Fields& graph);
  absl::Status ReadNode(const Json& json, const std::string& place);
  absl::Status ReadResults(const Json& outputs, const std::string& place, Node& node);
  absl::Status ReadOutputs(const Fields& signature);
  absl::StatusOr<Argument> ParseArgument(const Json& json, const std::string& place) const;
  absl::StatusOr<ValueRef> Use(const Json& json, const std::string& place) const;
  template <typename T>
  absl::StatusOr<Argument> ParseList(const Json& json, const std::string& place, bool (Json::*is)() const) const;
  absl::Status Define(const std::string& name, const std::string& place) {
    if (name.empty()) return base::InvalidArgument("{}: a value has no name", place);
    if (defined_.insert(name).second) return absl::OkStatus();
    return base::InvalidArgument("{}: the value '{}' is defined twice", place, name);
  }

  const Json& json_;
  const ReadOptions& options_;
  Program out_;
  std::set<std::string> defined_;
};

absl::Status ProgramParser::ReadVersion(const Fields& root) {
  if (root.Find("torch_version") != nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(out_.writer, root.Text("torch_version"));
  }
  MEDLEY_ASSIGN_OR_RETURN(const Json* version, root.Get("schema_version"));
  const Fields fields(*version, "schema_version");
  MEDLEY_ASSIGN_OR_RETURN(const int64_t major, fields.Number("major"));
  MEDLEY_ASSIGN_OR_RETURN(const int64_t minor, fields.Number("minor"));
  if (major > kNewestMajor) {
    return base::Unimplemented(
        "the archive was written by PyTorch {} with schema {}.{}; the newest schema that is read is {}",
        out_.writer.empty() ? "(unknown)" : out_.writer, major, minor, kNewestMajor);
  }
  out_.schema_major = static_cast<int>(major);
  out_.schema_minor = static_cast<int>(minor);
  const Json* opset = root.Find("opset_version");
  if (opset == nullptr || !opset->is_object()) return absl::OkStatus();
  for (const auto& [name, number] : opset->items()) {
    if (number.is_number_integer()) out_.opset[name] = number.get<int64_t>();
  }
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadRanges(const Fields& root) {
  const Json* ranges = root.Find("range_constraints");
  if (ranges == nullptr || !ranges->is_object()) return absl::OkStatus();
  for (const auto& [symbol, json] : ranges->items()) {
    const auto bound = [&](const char* name) -> std::optional<int64_t> {
      const auto found = json.is_object() ? json.find(name) : json.end();
      return found == json.end() || !found->is_number_integer() ? std::nullopt : std::optional(found->get<int64_t>());
    };
    out_.ranges[symbol] = {bound("min_val"), bound("max_val")};
  }
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadValues(const Fields& graph) {
  MEDLEY_ASSIGN_OR_RETURN(const Json* tensors, graph.Get("tensor_values"));
  for (const auto& [name, json] : tensors->items()) {
    MEDLEY_ASSIGN_OR_RETURN(out_.tensors[name], ParseMeta(json, fmt::format("the tensor '{}'", name)));
  }
  const Json* numbers = graph.Find("sym_int_values");
  if (numbers == nullptr) return absl::OkStatus();
  for (const auto& [name, json] : numbers->items()) {
    MEDLEY_ASSIGN_OR_RETURN(out_.numbers[name], ParseSymInt(json, fmt::format("the number '{}'", name)));
  }
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadInputs(const Fields& signature) {
  MEDLEY_ASSIGN_OR_RETURN(const Json* inputs, signature.List("input_specs"));
  for (const Json& json : *inputs) {
    MEDLEY_ASSIGN_OR_RETURN(const auto found, UnionOf(json, "signature.input_specs"));
    MEDLEY_RETURN_IF_ERROR(ReadInput(found.first, *found.second));
  }
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadInput(const std::string& kind, const Json& spec) {
  const Fields fields(spec, fmt::format("the input '{}'", kind));
  if (kind == "token") return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const Json* argument, fields.Get("arg"));
  Input input;
  std::string stored;
  if (kind == "user_input") {
    MEDLEY_ASSIGN_OR_RETURN(const auto found, UnionOf(*argument, fields.place()));
    if (found.first != "as_tensor") {
      return base::InvalidArgument(
          "an argument of forward is a constant or no tensor ({}); only tensors are trained on", found.second->dump());
    }
    MEDLEY_ASSIGN_OR_RETURN(input.value, Fields(*found.second, fields.place()).Text("name"));
    input.name = input.value;
  } else {
    const Fields value(*argument, fields.place());
    const auto name = [&](const char* field) -> absl::Status {
      MEDLEY_ASSIGN_OR_RETURN(input.name, fields.Text(field));
      return absl::OkStatus();
    };
    if (kind == "parameter") {
      input.kind = InputKind::kParameter;
      MEDLEY_RETURN_IF_ERROR(name("parameter_name"));
    } else if (kind == "buffer") {
      input.kind = InputKind::kBuffer;
      MEDLEY_RETURN_IF_ERROR(name("buffer_name"));
      const Json* persistent = fields.Find("persistent");
      input.persistent = persistent == nullptr || !persistent->is_boolean() || persistent->get<bool>();
    } else if (kind == "tensor_constant") {
      input.kind = InputKind::kConstant;
      MEDLEY_RETURN_IF_ERROR(name("tensor_constant_name"));
    } else if (kind == "custom_obj") {
      return absl::OkStatus();  // a node that uses it is refused: the value is not defined
    } else {
      return base::InvalidArgument("the signature has an input of the kind '{}', which is not known", kind);
    }
    MEDLEY_ASSIGN_OR_RETURN(input.value, value.Text("name"));
  }
  MEDLEY_RETURN_IF_ERROR(Define(input.value, fields.place()));
  if (!out_.tensors.contains(input.value)) {
    return base::InvalidArgument("the input '{}' has no type and shape", input.value);
  }
  out_.inputs.push_back(std::move(input));
  return absl::OkStatus();
}

absl::StatusOr<ValueRef> ProgramParser::Use(const Json& json, const std::string& place) const {
  MEDLEY_ASSIGN_OR_RETURN(const std::string name, Fields(json, place).Text("name"));
  if (!defined_.contains(name))
    return base::InvalidArgument("{}: the value '{}' is used before it is defined", place, name);
  return ValueRef{name};
}

template <typename T>
absl::StatusOr<Argument> ProgramParser::ParseList(const Json& json, const std::string& place,
                                                  bool (Json::*is)() const) const {
  std::vector<T> list;
  for (const Json& item : json) {
    if (!(item.*is)())
      return base::InvalidArgument("{}: the list has {}, which is of another type", place, item.dump());
    list.push_back(item.get<T>());
  }
  return list;
}

absl::StatusOr<Argument> ProgramParser::ParseArgument(const Json& json, const std::string& place) const {
  MEDLEY_ASSIGN_OR_RETURN(const auto found, UnionOf(json, place));
  const std::string& kind = found.first;
  const Json& value = *found.second;
  const auto wrong = [&] {
    return base::InvalidArgument("{}: '{}' cannot be {}", place, kind, value.dump().substr(0, 100));
  };
  // {"as_name": "sym_size"} or {"as_int": 3}
  const auto number = [&](const Json& item) -> absl::StatusOr<IntOrRef> {
    MEDLEY_ASSIGN_OR_RETURN(const auto inner, UnionOf(item, place));
    if (inner.first == "as_int" && inner.second->is_number_integer()) return inner.second->get<int64_t>();
    if (inner.first == "as_name" && inner.second->is_string()) {
      MEDLEY_ASSIGN_OR_RETURN(ValueRef ref, Use(Json{{"name", *inner.second}}, place));
      return ref;
    }
    return wrong();
  };
  if (kind == "as_none") return None{};
  if (kind == "as_tensor") return Use(value, place);
  if (kind == "as_int") return value.is_number_integer() ? absl::StatusOr<Argument>(value.get<int64_t>()) : wrong();
  if (kind == "as_float") {
    if (value.is_number()) return value.get<double>();
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    return wrong();
  }
  if (kind == "as_bool") return value.is_boolean() ? absl::StatusOr<Argument>(value.get<bool>()) : wrong();
  if (kind == "as_string") return value.is_string() ? absl::StatusOr<Argument>(value.get<std::string>()) : wrong();
  if (kind == "as_sym_int") {
    MEDLEY_ASSIGN_OR_RETURN(const IntOrRef parsed, number(value));
    if (const auto* fixed = std::get_if<int64_t>(&parsed)) return *fixed;
    return std::get<ValueRef>(parsed);
  }
  if (kind == "as_scalar_type") {
    MEDLEY_ASSIGN_OR_RETURN(const ScalarType type, TypeOf(value, place));
    return type;
  }
  if (kind == "as_memory_format")
    return value.is_number_integer() ? absl::StatusOr<Argument>(MemoryFormat{value.get<int>()}) : wrong();
  if (kind == "as_layout")
    return value.is_number_integer() ? absl::StatusOr<Argument>(Layout{value.get<int>()}) : wrong();
  if (kind == "as_device") {
    MEDLEY_ASSIGN_OR_RETURN(const std::string type, Fields(value, place).Text("type"));
    return Device{type, -1};
  }
  if (kind == "as_optional_tensor") {
    MEDLEY_ASSIGN_OR_RETURN(const auto inner, UnionOf(value, place));
    if (inner.first == "as_none") return None{};
    return Use(*inner.second, place);
  }
  if (kind == "as_graph") {
    return base::InvalidArgument("{} calls another graph: control flow that follows from data cannot be divided",
                                 place);
  }
  if (!value.is_array()) {
    return base::InvalidArgument("{}: an argument of the kind '{}' is not known", place, kind);
  }
  if (kind == "as_ints") return ParseList<int64_t>(value, place, &Json::is_number_integer);
  if (kind == "as_floats") return ParseList<double>(value, place, &Json::is_number);
  if (kind == "as_bools") return ParseList<bool>(value, place, &Json::is_boolean);
  if (kind == "as_strings") return ParseList<std::string>(value, place, &Json::is_string);
  if (kind == "as_tensors") {
    std::vector<ValueRef> refs;
    for (const Json& item : value) {
      MEDLEY_ASSIGN_OR_RETURN(refs.emplace_back(), Use(item, place));
    }
    return refs;
  }
  if (kind == "as_optional_tensors") {
    std::vector<std::optional<ValueRef>> refs;
    for (const Json& item : value) {
      MEDLEY_ASSIGN_OR_RETURN(const auto inner, UnionOf(item, place));
      refs.emplace_back();
      if (inner.first == "as_none") continue;
      MEDLEY_ASSIGN_OR_RETURN(refs.back(), Use(*inner.second, place));
    }
    return refs;
  }
  if (kind == "as_sym_ints") {
    std::vector<IntOrRef> numbers;
    for (const Json& item : value) {
      MEDLEY_ASSIGN_OR_RETURN(numbers.emplace_back(), number(item));
    }
    return numbers;
  }
  return base::InvalidArgument("{}: an argument of the kind '{}' is not known", place, kind);
}

// "L__self__,,Model;L__self___fc,fc,torch.nn.modules.linear.Linear" -> the last one's path and type.
void ReadModules(const std::string& stack, Node& node) {
  const std::string last = stack.substr(stack.rfind(';') + 1);
  const size_t first = last.find(','), second = last.find(',', first + 1);
  if (first == std::string::npos || second == std::string::npos) return;
  node.module_path = last.substr(first + 1, second - first - 1);
  node.module_type = last.substr(second + 1);
  // Older versions write "L['self'].fc" for the module of the whole model's field.
  constexpr std::string_view kSelf = "L['self']";
  if (node.module_path.starts_with(kSelf)) {
    node.module_path = node.module_path.substr(std::min(node.module_path.size(), kSelf.size() + 1));
  }
  // A module that is called more than once: "fc@1".
  node.module_path = node.module_path.substr(0, node.module_path.find('@'));
}

// 'File "make.py", line 12, in forward\n    x = self.fc(x)' ... -> "make.py:12, in forward: x = self.fc(x)", of the
// first frame, which is the user's own code.
std::string SourceOf(const std::string& trace) {
  const size_t name = trace.find("File \""), end = trace.find('"', name + 6);
  const size_t line = trace.find("line ", end), after = trace.find('\n', line);
  if (name == std::string::npos || end == std::string::npos || line == std::string::npos) return "";
  const std::string file = trace.substr(name + 6, end - name - 6);
  std::string where = trace.substr(line + 5, after == std::string::npos ? std::string::npos : after - line - 5);
  std::string code;
  if (after != std::string::npos) {
    const size_t begin = trace.find_first_not_of(' ', after + 1);
    if (begin != std::string::npos) code = trace.substr(begin, trace.find('\n', begin) - begin);
  }
  return fmt::format("{}:{}{}{}", file.substr(file.rfind('/') + 1), where, code.empty() ? "" : ": ", code);
}

absl::Status ProgramParser::ReadNodes(const Fields& graph) {
  MEDLEY_ASSIGN_OR_RETURN(const Json* nodes, graph.List("nodes"));
  if (static_cast<int64_t>(nodes->size()) > options_.most_nodes) {
    return base::InvalidArgument("the graph has {} nodes; at most {} are read", nodes->size(), options_.most_nodes);
  }
  for (size_t i = 0; i < nodes->size(); ++i) MEDLEY_RETURN_IF_ERROR(ReadNode((*nodes)[i], fmt::format("node {}", i)));
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadNode(const Json& json, const std::string& number) {
  const Fields unnamed(json, number);
  Node node;
  MEDLEY_ASSIGN_OR_RETURN(node.target, unnamed.Text("target"));
  constexpr std::string_view kPrefix = "torch.ops.";
  if (node.target.starts_with(kPrefix)) node.target.erase(0, kPrefix.size());
  if (const Json* metadata = unnamed.Find("metadata"); metadata != nullptr && metadata->is_object()) {
    if (const auto stack = metadata->find("nn_module_stack"); stack != metadata->end() && stack->is_string()) {
      ReadModules(stack->get<std::string>(), node);
    }
    if (const auto trace = metadata->find("stack_trace"); trace != metadata->end() && trace->is_string()) {
      node.source = SourceOf(trace->get<std::string>());
    }
  }
  const std::string place = fmt::format("{} ('{}' of module '{}'{}{})", number, node.target, node.module_path,
                                        node.source.empty() ? "" : ", ", node.source);
  const Fields fields(json, place);
  MEDLEY_ASSIGN_OR_RETURN(const Json* inputs, fields.List("inputs"));
  for (const Json& input : *inputs) {
    const Fields each(input, place);
    NamedArgument argument;
    MEDLEY_ASSIGN_OR_RETURN(argument.name, each.Text("name"));
    MEDLEY_ASSIGN_OR_RETURN(const Json* value, each.Get("arg"));
    MEDLEY_ASSIGN_OR_RETURN(argument.value,
                            ParseArgument(*value, fmt::format("the argument '{}' of {}", argument.name, place)));
    constexpr int kKeyword = 2;
    const Json* kind = each.Find("kind");
    argument.keyword = kind != nullptr && kind->is_number_integer() && kind->get<int64_t>() == kKeyword;
    node.inputs.push_back(std::move(argument));
  }
  MEDLEY_ASSIGN_OR_RETURN(const Json* outputs, fields.List("outputs"));
  MEDLEY_RETURN_IF_ERROR(ReadResults(*outputs, place, node));
  if (const std::string_view instead = InsteadOf(node.target); !instead.empty()) {
    return base::Unimplemented("{}: {}", place, instead);
  }
  if (!IsPureCall(node.target)) {
    return base::InvalidArgument(
        "{}: a model may not call this operator: only those that compute and do nothing else are allowed", place);
  }
  out_.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadResults(const Json& outputs, const std::string& place, Node& node) {
  const auto add = [&](const Json& tensor) -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(const std::string name, Fields(tensor, place).Text("name"));
    MEDLEY_RETURN_IF_ERROR(Define(name, place));
    if (!out_.tensors.contains(name))
      return base::InvalidArgument("{}: its result '{}' has no type and shape", place, name);
    node.outputs.push_back(name);
    return absl::OkStatus();
  };
  for (const Json& output : outputs) {
    MEDLEY_ASSIGN_OR_RETURN(const auto found, UnionOf(output, place));
    const auto& [kind, value] = found;
    if (kind == "as_tensor") {
      MEDLEY_RETURN_IF_ERROR(add(*value));
    } else if (kind == "as_tensors" && value->is_array()) {
      node.returns_list = true;
      for (const Json& tensor : *value) MEDLEY_RETURN_IF_ERROR(add(tensor));
    } else if (kind == "as_none") {
      node.outputs.emplace_back();
    } else if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
      const auto name = value->is_object() ? value->find("as_name") : value->end();
      if (name == value->end() || !name->is_string()) continue;
      MEDLEY_RETURN_IF_ERROR(Define(name->get<std::string>(), place));
      node.outputs.push_back(name->get<std::string>());
    } else {
      return base::InvalidArgument("{}: a result of the kind '{}' is not known", place, kind);
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramParser::ReadOutputs(const Fields& signature) {
  MEDLEY_ASSIGN_OR_RETURN(const Json* outputs, signature.List("output_specs"));
  for (const Json& json : *outputs) {
    MEDLEY_ASSIGN_OR_RETURN(const auto found, UnionOf(json, "signature.output_specs"));
    const auto& [kind, spec] = found;
    const Fields fields(*spec, fmt::format("the output '{}'", kind));
    if (kind == "token") continue;
    MEDLEY_ASSIGN_OR_RETURN(const Json* argument, fields.Get("arg"));
    Output output;
    const Json* named = argument;
    if (kind == "user_output") {
      MEDLEY_ASSIGN_OR_RETURN(const auto value, UnionOf(*argument, fields.place()));
      if (value.first != "as_tensor") continue;  // a constant
      named = value.second;
    } else if (kind == "buffer_mutation") {
      output.kind = OutputKind::kBufferMutation;
      MEDLEY_ASSIGN_OR_RETURN(output.target, fields.Text("buffer_name"));
    } else if (kind == "user_input_mutation") {
      output.kind = OutputKind::kUserInputMutation;
      MEDLEY_ASSIGN_OR_RETURN(output.target, fields.Text("user_input_name"));
    } else if (kind == "loss_output") {
      output.kind = OutputKind::kLoss;
    } else {
      return base::InvalidArgument("the signature has an output of the kind '{}': such programs cannot be trained",
                                   kind);
    }
    MEDLEY_ASSIGN_OR_RETURN(const ValueRef ref, Use(*named, fields.place()));
    output.value = ref.name;
    out_.outputs.push_back(std::move(output));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> ParseStrict(std::string_view text, std::string_view what) {
  constexpr int kMostLevels = 64;
  constexpr size_t kMostValues = 4'000'000;  // an empty list takes 2 bytes of text and 40 of memory
  int level = 0;
  size_t values = 1;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      ++values;
    } else if (c == '[' || c == '{') {
      ++values;
      if (++level > kMostLevels)
        return base::InvalidArgument("{}: it is nested more than {} levels deep", what, kMostLevels);
    } else if (c == ']' || c == '}') {
      --level;
    }
    if (values > kMostValues) return base::InvalidArgument("{}: it has more than {} values", what, kMostValues);
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return base::InvalidArgument("{}: it is no JSON", what);
  return json;
}

absl::StatusOr<StoredTensor> ParseStored(const Json& json, const std::string& name) {
  const std::string place = fmt::format("the stored tensor '{}'", name);
  const Fields fields(json, place);
  MEDLEY_ASSIGN_OR_RETURN(const TensorMeta meta, ParseMeta(json, place));
  StoredTensor tensor;
  tensor.type = meta.type;
  tensor.requires_grad = meta.requires_grad;
  for (const SymInt& size : meta.sizes) {
    if (!size.expression.empty()) return base::InvalidArgument("{}: its shape is not fixed", place);
    tensor.sizes.push_back(size.value);
  }
  MEDLEY_ASSIGN_OR_RETURN(const Json* strides, fields.List("strides"));
  for (const Json& stride : *strides) {
    MEDLEY_ASSIGN_OR_RETURN(const SymInt parsed, ParseSymInt(stride, place));
    tensor.strides.push_back(parsed.value);
  }
  if (const Json* offset = fields.Find("storage_offset"); offset != nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(const SymInt parsed, ParseSymInt(*offset, place));
    tensor.offset = parsed.value;
  }
  if (tensor.strides.size() != tensor.sizes.size())
    return base::InvalidArgument("{}: it has another number of strides", place);
  return tensor;
}

absl::Status CheckStored(const StoredTensor& tensor, const std::string& name) {
  const auto wrong = [&] {
    return base::InvalidArgument("the stored tensor '{}' does not fit into its storage of {} bytes", name,
                                 tensor.bytes.size());
  };
  int64_t last = tensor.offset, elements = 1;
  if (tensor.offset < 0) return wrong();
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t most = 0;
    if (tensor.strides[i] < 0 || __builtin_mul_overflow(elements, tensor.sizes[i], &elements) ||
        __builtin_mul_overflow(std::max<int64_t>(0, tensor.sizes[i] - 1), tensor.strides[i], &most) ||
        __builtin_add_overflow(last, most, &last)) {
      return wrong();
    }
  }
  const auto held = static_cast<int64_t>(tensor.bytes.size() / BytesOf(tensor.type));
  // Expanded tensors repeat elements, but not so often that reading them would exhaust the memory.
  constexpr int64_t kMostRepeats = 1 << 20;
  if (elements > 0 && (last >= held || elements / kMostRepeats > held)) return wrong();
  return absl::OkStatus();
}

absl::StatusOr<Program> ParseProgram(std::string_view text, const ReadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const Json json, ParseStrict(text, "the program"));
  return ProgramParser(json, options).Parse();
}

}  // namespace medley::worker::exported
