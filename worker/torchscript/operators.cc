#include "worker/torchscript/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <tuple>

namespace medley::worker::torchscript {

const std::set<std::string>& ShapeQueries() {
  static const std::set<std::string> kNames = {"aten::size",
                                               "aten::dim",
                                               "aten::numel",
                                               "aten::len",
                                               "aten::is_floating_point",
                                               "prim::dtype",
                                               "prim::requires_grad",
                                               "aten::is_grad_enabled",
                                               "prim::device",
                                               "prim::layout",
                                               "prim::is_cuda",
                                               "prim::is_quantized",
                                               "prim::is_sparse",
                                               "prim::is_nested",
                                               "prim::is_mkldnn",
                                               "aten::is_contiguous",
                                               "prim::is_mps",
                                               "aten::is_complex",
                                               "prim::is_meta",
                                               "prim::is_xpu",
                                               "aten::__is__",
                                               "aten::__isnot__",
                                               "aten::is_autocast_enabled",
                                               "aten::is_autocast_cpu_enabled"};
  return kNames;
}

std::string WhatRunsDoNotShow(const torch::jit::Node& node, const std::vector<Item>& inputs) {
  static const std::set<std::string> kShapesFromData = {"aten::nonzero",    "aten::nonzero_numpy",
                                                        "aten::argwhere",   "aten::masked_select",
                                                        "aten::unique_dim", "aten::_unique",
                                                        "aten::_unique2",   "aten::unique_consecutive",
                                                        "aten::bincount",   "aten::unique_dim_consecutive"};
  const c10::FunctionSchema* const schema = node.maybeSchema();
  for (size_t i = 0; schema != nullptr && i < std::min(schema->arguments().size(), inputs.size()); ++i) {
    const c10::AliasInfo* const alias = schema->arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && inputs[i].kind != Item::Kind::kTensor) {
      return "it changes a list in a way that is not followed";
    }
  }
  const std::string name = node.kind().toQualString();
  bool from_data = kShapesFromData.contains(name);
  if (name == "aten::index" && inputs[1].kind == Item::Kind::kList) {  // a mask picks as many as it holds
    for (const Item& index : *inputs[1].items) {
      if (index.kind != Item::Kind::kTensor) continue;
      const at::ScalarType type = index.tensors.front().scalar_type();
      from_data = from_data || type == at::kBool || type == at::kByte;
    }
  }
  return from_data ? "the shape of its result follows from data" : "";
}

const std::map<std::string, std::string>& Arithmetic() {
  static const std::map<std::string, std::string> kTargets = {{"aten::mul", "_operator.mul"},
                                                              {"aten::add", "_operator.add"},
                                                              {"aten::sub", "_operator.sub"},
                                                              {"aten::floordiv", "_operator.floordiv"},
                                                              {"aten::floor_divide", "_operator.floordiv"},
                                                              {"aten::neg", "_operator.neg"}};
  return kTargets;
}

std::string TypeName(const c10::IValue& object) {
  std::string name = object.type()->annotation_str(), out;
  std::istringstream parts(name);
  for (std::string part; std::getline(parts, part, '.');) {
    if (part == "__torch__" || part.starts_with("___torch_mangle_")) continue;
    out += (out.empty() ? "" : ".") + part;
  }
  return out;
}

Place SourceOf(const torch::jit::Node& node) {
  Place place;
  c10::optional<torch::jit::SourceRange> range = node.sourceRange();
  if (range->source() != nullptr) {
    if (const auto original = range->findSourceRangeThatGenerated()) range = original;
  }
  if (range->source() == nullptr) return place;
  const size_t line = range->source()->lineno_for_offset(range->start());
  place.line = range->source()->get_line(line).str();
  place.line.erase(0, place.line.find_first_not_of(' '));
  place.line.erase(place.line.find_last_not_of(" \n") + 1);
  if (const auto at = range->file_line_col()) {
    place.file = std::get<0>(*at);
    place.file = place.file.substr(place.file.rfind('/') + 1);
    place.line_number = static_cast<int>(std::get<1>(*at));
  }
  return place;
}

bool NameConvolution(std::string& base, std::string& overload, std::vector<std::pair<std::string, Item>>& arguments) {
  const Item& weight = arguments.at(1).second;
  const Item& transposed = arguments.at(6).second;
  if (weight.kind != Item::Kind::kTensor || transposed.kind != Item::Kind::kConstant || !transposed.constant.isBool()) {
    return false;
  }
  const bool is_transposed = transposed.constant.toBool();
  const int64_t dimensions = weight.tensors.front().dim() - 2;
  const std::vector<std::pair<std::string, Item>> all = arguments;
  const auto pick = [&](std::initializer_list<size_t> which) {
    arguments.clear();
    for (const size_t i : which) arguments.push_back(all[i]);
  };
  if (is_transposed) {  // input, weight, bias, stride, padding, output_padding, groups, dilation
    pick({0, 1, 2, 3, 4, 7, 8, 5});
    base = fmt::format("conv_transpose{}d", dimensions);
    overload = dimensions == 1 ? "default" : "input";
  } else {  // input, weight, bias, stride, padding, dilation, groups
    pick({0, 1, 2, 3, 4, 5, 8});
    base = fmt::format("conv{}d", dimensions);
    overload = "default";
  }
  return true;
}

}  // namespace medley::worker::torchscript
