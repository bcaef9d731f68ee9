#include "worker/torchscript/program_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace medley::worker::torchscript {
namespace {

using Json = nlohmann::json;

constexpr char kSymbol[] = "s0";

// ATen's types by the numbers of the schema.
int TypeNumber(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return 1;
    case at::kChar:
      return 2;
    case at::kShort:
      return 3;
    case at::kInt:
      return 4;
    case at::kLong:
      return 5;
    case at::kHalf:
      return 6;
    case at::kFloat:
      return 7;
    case at::kDouble:
      return 8;
    case at::kBool:
      return 12;
    case at::kBFloat16:
      return 13;
    default:
      return 0;
  }
}

Json Number(int64_t value) { return {{"as_int", value}}; }

// A size as a + b x batch.
absl::StatusOr<Json> SizeOf(const std::array<int64_t, kRuns>& values) {
  if (values[0] == values[1] && values[1] == values[2]) return Number(values[0]);
  const int64_t slope = (values[1] - values[0]) / (kBatches[1] - kBatches[0]);
  const int64_t rest = values[0] - slope * kBatches[0];
  for (size_t run = 0; run < kRuns; ++run) {
    if (slope * kBatches[run] + rest != values[run]) {
      return base::InvalidArgument("a size is {}, {} and {} for batches of {}, {} and {}: no multiple of the batch",
                                   values[0], values[1], values[2], kBatches[0], kBatches[1], kBatches[2]);
    }
  }
  std::string text = slope == 1 ? kSymbol : fmt::format("{}*{}", slope, kSymbol);
  if (rest > 0) text += fmt::format(" + {}", rest);
  if (rest < 0) text += fmt::format(" - {}", -rest);
  return Json{{"as_expr", {{"expr_str", text}, {"hint", nullptr}}}};
}

Json Metadata(const at::Tensor& tensor, Json sizes) {
  return {{"dtype", TypeNumber(tensor.scalar_type())},
          {"sizes", std::move(sizes)},
          {"requires_grad", tensor.requires_grad()},
          {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", Json::array()},
          {"storage_offset", Number(0)},
          {"layout", 7}};
}

Json Named(const Item& item) { return {{"name", item.name}}; }

absl::StatusOr<Json> ConstantJson(const std::string& name, const c10::IValue& value) {
  if (value.isNone()) return Json{{"as_none", true}};
  if (value.isBool()) return Json{{"as_bool", value.toBool()}};
  if (value.isInt() && name == "dtype") return Json{{"as_scalar_type", TypeNumber(at::ScalarType(value.toInt()))}};
  if (value.isInt() && name == "memory_format") return Json{{"as_memory_format", value.toInt() + 1}};
  if (value.isInt() && name == "layout") return Json{{"as_layout", 7}};
  if (value.isInt()) return Number(value.toInt());
  if (value.isDouble()) {
    const double number = value.toDouble();
    if (std::isfinite(number)) return Json{{"as_float", number}};
    return Json{{"as_float", std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity"}};
  }
  if (value.isString()) return Json{{"as_string", value.toStringRef()}};
  if (value.isDevice()) return Json{{"as_device", {{"type", "cpu"}, {"index", nullptr}}}};
  if (value.isIntList()) return Json{{"as_ints", value.toIntVector()}};
  if (value.isDoubleList()) return Json{{"as_floats", value.toDoubleVector()}};
  if (value.isBoolList()) {
    Json list = Json::array();
    for (const bool each : value.toBoolList()) list.push_back(each);
    return Json{{"as_bools", std::move(list)}};
  }
  if (value.isList() && value.toListRef().empty()) return Json{{"as_ints", Json::array()}};
  return base::Unimplemented("the argument '{}' is of the type {}, which cannot be written", name, value.tagKind());
}

bool IsNone(const Item& item) { return item.kind == Item::Kind::kConstant && item.constant.isNone(); }

absl::StatusOr<Json> ListJson(const std::string& name, const std::vector<Item>& items) {
  const auto is = [](Item::Kind kind) { return [kind](const Item& item) { return item.kind == kind; }; };
  Json list = Json::array();
  if (std::ranges::any_of(items, is(Item::Kind::kTensor))) {
    const bool all = std::ranges::all_of(items, is(Item::Kind::kTensor));
    for (const Item& item : items) {
      if (all) {
        list.push_back(Named(item));
      } else {
        list.push_back(IsNone(item) ? Json{{"as_none", true}} : Json{{"as_tensor", Named(item)}});
      }
    }
    return Json{{all ? "as_tensors" : "as_optional_tensors", std::move(list)}};
  }
  if (std::ranges::any_of(items, is(Item::Kind::kNumber))) {
    for (const Item& item : items) {
      list.push_back(item.kind == Item::Kind::kNumber ? Json{{"as_name", item.name}} : Number(item.constant.toInt()));
    }
    return Json{{"as_sym_ints", std::move(list)}};
  }
  if (items.empty()) return Json{{"as_ints", std::move(list)}};
  for (const Item& item : items) {
    MEDLEY_ASSIGN_OR_RETURN(const Json each, ConstantJson(name, item.constant));
    list.push_back(each.begin().value());
  }
  const c10::IValue& first = items.front().constant;
  if (first.isInt()) return Json{{"as_ints", std::move(list)}};
  if (first.isDouble()) return Json{{"as_floats", std::move(list)}};
  if (first.isBool()) return Json{{"as_bools", std::move(list)}};
  if (first.isString()) return Json{{"as_strings", std::move(list)}};
  return base::Unimplemented("the argument '{}' is a list of the type {}, which cannot be written", name,
                             first.tagKind());
}

absl::StatusOr<Json> ArgumentJson(const std::string& name, const Item& item) {
  switch (item.kind) {
    case Item::Kind::kTensor:
      return Json{{"as_tensor", Named(item)}};
    case Item::Kind::kNumber:
      return Json{{"as_sym_int", {{"as_name", item.name}}}};
    case Item::Kind::kList:
      return ListJson(name, *item.items);
    case Item::Kind::kObject:
      return base::Unimplemented("the argument '{}' is an object", name);
    case Item::Kind::kConstant:
      break;
  }
  return ConstantJson(name, item.constant);
}

}  // namespace

std::string Place::Describe() const {
  std::string text = fmt::format("module '{}'", module_path);
  if (!file.empty()) text += fmt::format(", {}:{}: {}", file, line_number, line);
  return text;
}

std::string ProgramWriter::NewName(const std::string& base) {
  const int count = names_[base]++;
  return count == 0 ? base : NewName(fmt::format("{}_{}", base, count));
}

absl::Status ProgramWriter::AddTensor(const Item& tensor, const Place& place) {
  const at::Tensor& first = tensor.tensors.front();
  if (TypeNumber(first.scalar_type()) == 0) {
    return base::Unimplemented("{}: tensors of the type {} are not read", place.Describe(),
                               at::toString(first.scalar_type()));
  }
  Json sizes = Json::array();
  for (int64_t d = 0; d < first.dim(); ++d) {
    std::array<int64_t, kRuns> values = {};
    for (size_t run = 0; run < kRuns; ++run) {
      if (tensor.tensors[run].dim() != first.dim()) {
        return base::InvalidArgument("{}: the number of dimensions depends on the batch", place.Describe());
      }
      values[run] = tensor.tensors[run].size(d);
    }
    const absl::StatusOr<Json> size = SizeOf(values);
    if (!size.ok()) return base::Annotate(size.status(), place.Describe());
    sizes.push_back(*size);
  }
  tensors_[tensor.name] = Metadata(first, std::move(sizes));
  return absl::OkStatus();
}

absl::Status ProgramWriter::AddNumber(const Item& number, const Place& place) {
  const absl::StatusOr<Json> size = SizeOf(number.numbers);
  if (!size.ok()) return base::Annotate(size.status(), place.Describe());
  numbers_[number.name] = *size;
  return absl::OkStatus();
}

void ProgramWriter::AddUserInput(const Item& tensor) {
  user_inputs_.push_back({{"user_input", {{"arg", {{"as_tensor", Named(tensor)}}}}}});
}

void ProgramWriter::AddStored(const Item& tensor, const std::string& name, bool parameter) {
  if (parameter) {
    inputs_.push_back({{"parameter", {{"arg", Named(tensor)}, {"parameter_name", name}}}});
  } else {
    inputs_.push_back({{"buffer", {{"arg", Named(tensor)}, {"buffer_name", name}, {"persistent", true}}}});
  }
  AddWeight(tensor, name, parameter, weights_, "data/weights/");
}

void ProgramWriter::AddConstant(const Item& tensor) {
  inputs_.push_back({{"tensor_constant", {{"arg", Named(tensor)}, {"tensor_constant_name", tensor.name}}}});
  AddWeight(tensor, tensor.name, false, constants_, "data/constants/");
}

void ProgramWriter::AddWeight(const Item& tensor, const std::string& name, bool parameter, Json& config,
                              const std::string& prefix) {
  const at::Tensor values = tensor.tensors.front().contiguous();
  Json sizes = Json::array(), strides = Json::array();
  for (int64_t d = 0; d < values.dim(); ++d) {
    sizes.push_back(Number(values.size(d)));
    strides.push_back(Number(values.stride(d)));
  }
  Json meta = Metadata(tensor.tensors.front(), sizes);
  tensors_[tensor.name] = meta;
  meta["strides"] = std::move(strides);
  const std::string file = fmt::format("weight_{}", config.size());
  config[name] = {
      {"path_name", file}, {"is_param", parameter}, {"use_pickle", false}, {"tensor_meta", std::move(meta)}};
  files_.emplace_back(prefix + file,
                      std::string(static_cast<const char*>(values.data_ptr()), static_cast<size_t>(values.nbytes())));
}

void ProgramWriter::AddOutput(const Item& tensor) {
  outputs_.push_back({{"user_output", {{"arg", {{"as_tensor", Named(tensor)}}}}}});
}

void ProgramWriter::AddMutation(const Item& tensor, const std::string& buffer) {
  mutations_.push_back({{"buffer_mutation", {{"arg", Named(tensor)}, {"buffer_name", buffer}}}});
}

absl::Status ProgramWriter::AddNode(const std::string& target,
                                    const std::vector<std::pair<std::string, Item>>& arguments,
                                    const std::vector<Item>& results, const Place& place) {
  constexpr size_t kMostNodes = 100'000;
  if (nodes_.size() == kMostNodes) return base::ResourceExhausted("the model makes more than {} calls", kMostNodes);
  Json inputs = Json::array(), outputs = Json::array();
  for (const auto& [name, item] : arguments) {
    absl::StatusOr<Json> value = ArgumentJson(name, item);
    if (!value.ok()) return base::Annotate(value.status(), fmt::format("{} of {}", target, place.Describe()));
    inputs.push_back({{"name", name}, {"arg", *std::move(value)}, {"kind", 1}});
  }
  for (const Item& result : results) {
    if (result.kind == Item::Kind::kList) {
      Json list = Json::array();
      for (const Item& each : *result.items) list.push_back(Named(each));
      outputs.push_back({{"as_tensors", std::move(list)}});
    } else if (result.kind == Item::Kind::kNumber) {
      outputs.push_back({{"as_sym_int", {{"as_name", result.name}}}});
    } else {
      outputs.push_back({{"as_tensor", Named(result)}});
    }
  }
  const std::string trace =
      fmt::format("File \"{}\", line {}, in forward\n    {}", place.file, place.line_number, place.line);
  // Names of attributes and types have no comma and no semicolon.
  std::string stack = "root,,model";
  if (!place.module_path.empty()) {
    stack += fmt::format(";{},{},{}", place.module_path, place.module_path, place.module_type);
  }
  nodes_.push_back({{"target", "torch.ops." + target},
                    {"inputs", std::move(inputs)},
                    {"outputs", std::move(outputs)},
                    {"metadata", {{"nn_module_stack", stack}, {"stack_trace", place.file.empty() ? "" : trace}}}});
  return absl::OkStatus();
}

Entries ProgramWriter::Write() const {
  Json inputs = inputs_, outputs = mutations_;
  for (const Json& input : user_inputs_) inputs.push_back(input);
  for (const Json& output : outputs_) outputs.push_back(output);
  const Json program = {{"graph_module",
                         {{"graph", {{"nodes", nodes_}, {"tensor_values", tensors_}, {"sym_int_values", numbers_}}},
                          {"signature", {{"input_specs", std::move(inputs)}, {"output_specs", std::move(outputs)}}}}},
                        {"opset_version", {{"aten", 10}}},
                        {"range_constraints", {{kSymbol, {{"min_val", 1}, {"max_val", nullptr}}}}},
                        {"schema_version", {{"major", 8}, {"minor", 0}}},
                        {"torch_version", "TorchScript"}};
  Entries entries;
  const auto add = [&](const std::string& name, const std::string& text) {
    entries.emplace_back("model/" + name, text);
  };
  add("byteorder", "little");
  add("models/model.json", program.dump(-1, ' ', false, Json::error_handler_t::replace));
  add("data/weights/model_weights_config.json", Json{{"config", weights_}}.dump());
  add("data/constants/model_constants_config.json", Json{{"config", constants_}}.dump());
  for (const auto& [name, content] : files_) add(name, content);
  return entries;
}

}  // namespace medley::worker::torchscript
