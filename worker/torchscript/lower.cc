#include "worker/torchscript/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "worker/torchscript/containers.h"
#include "worker/torchscript/item.h"
#include "worker/torchscript/operators.h"
#include "worker/torchscript/program_writer.h"

namespace medley::worker::torchscript {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

constexpr int kMostSteps = 1'000'000;  // nodes that are followed
constexpr int kMostDepth = 200;        // of calls and blocks

class Lowering {
 public:
  explicit Lowering(const std::vector<SampleInput>& inputs) : wanted_(inputs) {}

  absl::StatusOr<Entries> Run(const torch::jit::Module& module) {
    const std::optional<torch::jit::Method> forward = Forward(module);
    if (!forward) return base::InvalidArgument("the model has no method forward");
    named_.Add(module);
    std::vector<Item> arguments = {Object(module._ivalue(), "")};
    MEDLEY_RETURN_IF_ERROR(AddInputs(forward->function().getSchema(), arguments));
    MEDLEY_ASSIGN_OR_RETURN(const Item result, Call(forward->function(), std::move(arguments)));
    std::vector<Item> outputs = {result};
    if (result.kind == Item::Kind::kList) outputs = *result.items;
    for (const Item& output : outputs) {
      if (output.kind != Item::Kind::kTensor) return base::Unimplemented("an output of the model is no tensor");
      MEDLEY_RETURN_IF_ERROR(CheckBatch(output));
      program_.AddOutput(output);
    }
    for (const auto& [buffer, value] : changed_) program_.AddMutation(value, buffer);
    return program_.Write();
  }

 private:
  static std::optional<torch::jit::Method> Forward(const torch::jit::Module& module) {
    const auto found = module.find_method("forward");
    return found ? std::optional(*found) : std::nullopt;
  }

  static Item Constant(c10::IValue value) { return {.kind = Item::Kind::kConstant, .constant = std::move(value)}; }
  static Item Object(c10::IValue value, std::string path) {
    return {.kind = Item::Kind::kObject, .constant = std::move(value), .path = std::move(path)};
  }
  static Item List(std::vector<Item> items) {
    return {.kind = Item::Kind::kList, .items = std::make_shared<std::vector<Item>>(std::move(items))};
  }

  absl::Status AddInputs(const c10::FunctionSchema& schema, std::vector<Item>& arguments) {
    size_t used = 0;
    for (size_t i = 1; i < schema.arguments().size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      const auto found = std::ranges::find(wanted_, argument.name(), &SampleInput::name);
      if (found == wanted_.end()) {
        if (argument.default_value()) {
          arguments.push_back(Constant(*argument.default_value()));
          continue;
        }
        return base::InvalidArgument("forward takes '{}' ({}), which is not among the inputs", argument.name(),
                                     argument.type()->str());
      }
      ++used;
      Item item{.kind = Item::Kind::kTensor, .name = program_.NewName(argument.name())};
      for (size_t run = 0; run < kRuns; ++run) {
        std::vector<int64_t> sizes = {kBatches[run]};
        sizes.insert(sizes.end(), found->shape.begin(), found->shape.end());
        item.tensors[run] = found->integers ? at::zeros(sizes, at::kLong) : at::randn(sizes);
      }
      MEDLEY_RETURN_IF_ERROR(program_.AddTensor(item, {}));
      program_.AddUserInput(item);
      arguments.push_back(std::move(item));
    }
    if (used == wanted_.size()) return absl::OkStatus();
    std::string names;
    for (size_t i = 1; i < schema.arguments().size(); ++i) names += " " + schema.arguments()[i].name();
    return base::InvalidArgument("forward does not take all of the inputs; it takes{}", names);
  }

  static absl::Status CheckBatch(const Item& output) {
    for (size_t run = 0; run < kRuns; ++run) {
      const at::Tensor& tensor = output.tensors[run];
      if (tensor.dim() > 0 && tensor.size(0) == kBatches[run]) continue;
      return base::InvalidArgument(
          "an output of the model has not the size of the batch first: a traced model may hold the batch that it was "
          "traced with; use torch.jit.script, or sizes from x.shape in forward");
    }
    return absl::OkStatus();
  }

  Place PlaceOf(const Node& node) const {
    Place place = SourceOf(node);
    if (!modules_.empty()) std::tie(place.module_path, place.module_type) = modules_.back();
    return place;
  }
  absl::Status Refuse(const Node& node, const std::string& why) const {
    return base::Unimplemented("'{}' of {}: {}", node.kind().toQualString(), PlaceOf(node).Describe(), why);
  }

  absl::StatusOr<Item> Call(torch::jit::Function& function, std::vector<Item> arguments) {
    if (++depth_ > kMostDepth) return base::Unimplemented("calls are nested more than {} deep", kMostDepth);
    if (!function.isGraphFunction()) return base::Unimplemented("the function {} is built in", function.name());
    const std::shared_ptr<torch::jit::Graph> graph = torch::jit::toGraphFunction(function).graph();
    const bool method = !arguments.empty() && arguments.front().kind == Item::Kind::kObject;
    if (method) modules_.emplace_back(arguments.front().path, TypeName(arguments.front().constant));
    const Block* block = graph->block();
    // Each call has values of its own: a function may be called again while it runs.
    std::map<const Value*, Item> values;
    std::swap(values, values_);
    for (size_t i = 0; i < block->inputs().size() && i < arguments.size(); ++i) {
      values_[block->inputs()[i]] = std::move(arguments[i]);
    }
    absl::Status status = Follow(*block);
    Item result;
    if (status.ok() && block->outputs().size() == 1) {
      result = values_.at(block->outputs()[0]);
    } else if (status.ok()) {
      status = base::Unimplemented("the function {} has {} results", function.name(), block->outputs().size());
    }
    std::swap(values, values_);
    if (method) modules_.pop_back();
    --depth_;
    if (!status.ok()) return status;
    return result;
  }

  absl::Status Follow(const Block& block) {
    for (const Node* node : block.nodes()) MEDLEY_RETURN_IF_ERROR(Step(const_cast<Node&>(*node)));
    return absl::OkStatus();
  }

  const Item& In(const Node& node, size_t i) { return values_.at(node.input(i)); }
  void Set(const Node& node, size_t i, Item item) { values_[node.output(i)] = std::move(item); }

  absl::Status Step(Node& node) {
    if (++steps_ > kMostSteps) return base::ResourceExhausted("the model has more than {} steps", kMostSteps);
    for (const Value* input : node.inputs()) {
      if (!values_.contains(input)) return Refuse(node, "it uses a value that is not known");
    }
    const c10::Symbol kind = node.kind();
    if (kind == c10::prim::Constant) return OfConstant(node);
    if (kind == c10::prim::GetAttr) return GetAttribute(node);
    if (kind == c10::prim::SetAttr) return SetAttribute(node);
    if (kind == c10::prim::CallMethod) return CallMethod(node);
    if (kind == c10::prim::CallFunction) return CallFunction(node);
    if (kind == c10::prim::ListConstruct || kind == c10::prim::TupleConstruct) return Construct(node);
    if (kind == c10::prim::TupleUnpack || kind == c10::prim::ListUnpack) return Unpack(node);
    if (kind == c10::prim::If) return If(node);
    if (kind == c10::prim::Loop) return Loop(node);
    if (kind == c10::prim::unchecked_cast || kind == c10::aten::detach_copy)
      return Set(node, 0, In(node, 0)), absl::OkStatus();
    const std::string name = kind.toQualString();
    if (name == "aten::format" || name == "aten::warn") {  // messages
      if (!node.outputs().empty()) Set(node, 0, Constant(std::string()));
      return absl::OkStatus();
    }
    const bool wraps = name == "prim::NumToTensor";
    if (wraps || name == "aten::Int" || name == "aten::ScalarImplicit" || name == "aten::IntImplicit") {
      Item item = In(node, 0);
      if (wraps || item.as_tensor) {
        item.as_tensor = wraps;
        return Set(node, 0, std::move(item)), absl::OkStatus();
      }
    }
    if (kind == c10::prim::Uninitialized) return Set(node, 0, Constant({})), absl::OkStatus();
    if (kind == c10::prim::RaiseException) return Refuse(node, "the model raises an exception");
    if (kind == c10::prim::Print) return Refuse(node, "a model that is trained does not print");
    if (node.blocks().size() > 0) return Refuse(node, "it holds code that cannot be followed");
    if (const std::optional<absl::Status> done = OfList(node)) return *done;
    return Compute(node);
  }

  Item ConstantTensor(const at::Tensor& tensor) {
    Item item{.kind = Item::Kind::kTensor, .name = program_.NewName("c_constant")};
    item.tensors.fill(tensor);
    program_.AddConstant(item);
    return item;
  }

  absl::Status OfConstant(Node& node) {
    if (node.output()->type()->kind() == c10::TypeKind::FunctionType)
      return Set(node, 0, Constant({})), absl::OkStatus();
    const c10::optional<c10::IValue> value = torch::jit::toIValue(node.output());
    if (!value) return Refuse(node, "a constant of a type that is not known");
    if (!value->isTensor()) return Set(node, 0, Constant(*value)), absl::OkStatus();
    const at::Tensor tensor = value->toTensor();
    if (tensor.dim() == 0 && tensor.scalar_type() == at::kLong) {  // traces compute sizes with such
      Item number = Constant(tensor.item<int64_t>());
      number.as_tensor = true;
      return Set(node, 0, std::move(number)), absl::OkStatus();
    }
    return Set(node, 0, ConstantTensor(tensor)), absl::OkStatus();
  }

  absl::Status GetAttribute(Node& node) {
    const Item object = In(node, 0);
    if (object.kind != Item::Kind::kObject) return Refuse(node, "an attribute of what is no module");
    const std::string name = node.s(c10::attr::name);
    const std::string path = object.path.empty() ? name : object.path + "." + name;
    if (const auto changed = changed_.find(path); changed != changed_.end()) {
      return Set(node, 0, changed->second), absl::OkStatus();
    }
    const auto type = object.constant.type()->expect<c10::ClassType>();
    const size_t slot = type->getAttributeSlot(name);
    const c10::IValue value = object.constant.toObject()->getSlot(slot);
    if (value.isObject()) return Set(node, 0, Object(value, path)), absl::OkStatus();
    if (name == "training" && value.isBool()) return Set(node, 0, Constant(true)), absl::OkStatus();
    if (!value.isTensor()) {  // such as an LSTM's list of its weights
      return Set(node, 0,
                 ItemOfAttribute(value, path,
                                 [&](const at::Tensor& tensor, const std::string& place) {
                                   const NamedTensors::Named* const named = named_.Find(tensor);
                                   if (named == nullptr) return Stored(tensor, place, false, false);
                                   return Stored(named->tensor, named->name, named->parameter, !named->parameter);
                                 })),
             absl::OkStatus();
    }
    const at::Tensor tensor = value.toTensor();
    if (!tensor.defined()) return Set(node, 0, Constant({})), absl::OkStatus();
    return Set(node, 0, Stored(tensor, path, type->is_parameter(slot), type->is_buffer(slot))), absl::OkStatus();
  }

  // Parameters that are one tensor are one value, under the first of their names.
  const Item& Stored(const at::Tensor& tensor, const std::string& path, bool parameter, bool buffer) {
    const auto [known, added] = stored_.try_emplace(tensor.unsafeGetTensorImpl());
    if (!added) return known->second;
    std::string name = path;
    std::ranges::replace(name, '.', '_');
    Item& item = known->second;
    item = {.kind = Item::Kind::kTensor, .name = program_.NewName((parameter ? "p_" : buffer ? "b_" : "c_") + name)};
    item.tensors[0] = tensor;
    // Runs may change buffers, which must not change the stored one.
    const bool trained = tensor.requires_grad();
    if (parameter || buffer) {
      program_.AddStored(item, path, parameter);
    } else {
      program_.AddConstant(item);
    }
    const at::NoGradGuard guard;
    for (at::Tensor& each : item.tensors) each = tensor.clone().set_requires_grad(trained);
    return item;
  }

  absl::Status SetAttribute(Node& node) {
    const Item object = In(node, 0);
    const Item value = In(node, 1);
    const std::string name = node.s(c10::attr::name);
    const std::string path = object.path.empty() ? name : object.path + "." + name;
    if (object.kind != Item::Kind::kObject || value.kind != Item::Kind::kTensor) {
      return Refuse(node, fmt::format("forward changes the attribute '{}'", path));
    }
    const auto type = object.constant.type()->expect<c10::ClassType>();
    const c10::optional<size_t> slot = type->findAttributeSlot(name);
    if (!slot || !type->is_buffer(*slot)) {
      return Refuse(node, fmt::format("forward changes '{}', which is no buffer", path));
    }
    changed_[path] = value;
    return absl::OkStatus();
  }

  absl::Status CallMethod(Node& node) {
    std::vector<Item> arguments;
    for (size_t i = 0; i < node.inputs().size(); ++i) arguments.push_back(In(node, i));
    if (arguments.front().kind != Item::Kind::kObject) return Refuse(node, "a method of what is no module");
    const auto type = arguments.front().constant.type()->expect<c10::ClassType>();
    torch::jit::Function* const method = type->findMethod(node.s(c10::attr::name));
    if (method == nullptr) return Refuse(node, "the method does not exist");
    MEDLEY_ASSIGN_OR_RETURN(Item result, Call(*method, std::move(arguments)));
    Set(node, 0, std::move(result));
    return absl::OkStatus();
  }

  absl::Status CallFunction(Node& node) {
    std::vector<Item> arguments;
    for (size_t i = 1; i < node.inputs().size(); ++i) arguments.push_back(In(node, i));
    const auto type = node.input(0)->type()->expect<c10::FunctionType>();
    MEDLEY_ASSIGN_OR_RETURN(Item result, Call(*type->function(), std::move(arguments)));
    Set(node, 0, std::move(result));
    return absl::OkStatus();
  }

  absl::Status Construct(Node& node) {
    std::vector<Item> items;
    for (size_t i = 0; i < node.inputs().size(); ++i) items.push_back(In(node, i));
    Set(node, 0, List(std::move(items)));
    return absl::OkStatus();
  }

  // A constant list as items.
  static std::optional<std::vector<Item>> ItemsOf(const Item& item) {
    if (item.kind == Item::Kind::kList) return *item.items;
    if (item.kind != Item::Kind::kConstant) return std::nullopt;
    std::vector<Item> items;
    if (item.constant.isTuple()) {
      for (const c10::IValue& value : item.constant.toTupleRef().elements()) items.push_back(Constant(value));
      return items;
    }
    if (!item.constant.isList()) return std::nullopt;
    for (const c10::IValue& value : item.constant.toList()) items.push_back(Constant(value));
    return items;
  }

  absl::Status Unpack(Node& node) {
    const std::optional<std::vector<Item>> items = ItemsOf(In(node, 0));
    if (!items || items->size() != node.outputs().size()) return Refuse(node, "it unpacks another number of values");
    for (size_t i = 0; i < items->size(); ++i) Set(node, i, (*items)[i]);
    return absl::OkStatus();
  }

  // Operators on lists of items. nullopt: the operator is another one.
  std::optional<absl::Status> OfList(Node& node) {
    if (node.inputs().empty() || In(node, 0).kind != Item::Kind::kList) return std::nullopt;
    std::vector<Item> inputs;
    for (size_t i = 0; i < node.inputs().size(); ++i) inputs.push_back(In(node, i));
    std::optional<ContainerResult> result = OnContainer(node.kind().toQualString(), inputs);
    if (!result) return std::nullopt;
    if (!result->refused.empty()) return Refuse(node, result->refused);
    if (!node.outputs().empty()) Set(node, 0, std::move(result->item));
    return absl::OkStatus();
  }

  // The condition of an If or a Loop, which must not depend on the run.
  std::optional<bool> Condition(const Item& item) const {
    if (item.kind != Item::Kind::kConstant || !item.constant.isBool()) return std::nullopt;
    return item.constant.toBool();
  }

  absl::Status If(Node& node) {
    const std::optional<bool> condition = Condition(In(node, 0));
    if (!condition) return Refuse(node, "the condition follows from data, not from attributes and sizes");
    const Block& block = *node.blocks()[*condition ? 0 : 1];
    MEDLEY_RETURN_IF_ERROR(Nested(block));
    for (size_t i = 0; i < node.outputs().size(); ++i) Set(node, i, values_.at(block.outputs()[i]));
    return absl::OkStatus();
  }

  absl::Status Nested(const Block& block) {
    if (++depth_ > kMostDepth) return base::Unimplemented("blocks are nested more than {} deep", kMostDepth);
    MEDLEY_RETURN_IF_ERROR(Follow(block));
    --depth_;
    return absl::OkStatus();
  }

  absl::Status Loop(Node& node) {
    const Item trips = In(node, 0);
    std::optional<bool> goes_on = Condition(In(node, 1));
    if (!goes_on || trips.kind != Item::Kind::kConstant || !trips.constant.isInt()) {
      return Refuse(node, "the number of rounds follows from data or from the batch");
    }
    std::vector<Item> carried;
    for (size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(In(node, i));
    const Block& body = *node.blocks()[0];
    for (int64_t trip = 0; trip < trips.constant.toInt() && *goes_on; ++trip) {
      values_[body.inputs()[0]] = Constant(trip);
      for (size_t i = 0; i < carried.size(); ++i) values_[body.inputs()[i + 1]] = carried[i];
      MEDLEY_RETURN_IF_ERROR(Nested(body));
      goes_on = Condition(values_.at(body.outputs()[0]));
      if (!goes_on) return Refuse(node, "the condition follows from data");
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = values_.at(body.outputs()[i + 1]);
    }
    for (size_t i = 0; i < carried.size(); ++i) Set(node, i, carried[i]);
    return absl::OkStatus();
  }

  // Runs an operator with all batches.
  absl::Status Execute(Node& node, std::array<std::vector<c10::IValue>, kRuns>& results) {
    const c10::FunctionSchema* const schema = node.maybeSchema();
    for (size_t run = 0; run < kRuns; ++run) {
      torch::jit::Stack stack;
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        const c10::TypePtr type =
            schema != nullptr && i < schema->arguments().size() ? schema->arguments()[i].type() : node.input(i)->type();
        stack.push_back(At(In(node, i), run, type));
      }
      try {
        torch::jit::Operation operation = node.getOperation();
        operation(stack);
      } catch (const std::exception& error) {
        const std::string text = error.what();
        return base::InvalidArgument(
            "'{}' of {} fails with a batch of {}: {}; a traced model may hold the batch that it was traced with",
            node.kind().toQualString(), PlaceOf(node).Describe(), kBatches[run], text.substr(0, text.find('\n')));
      }
      if (stack.size() != node.outputs().size()) return Refuse(node, "it gives another number of results");
      results[run] = std::move(stack);
    }
    return absl::OkStatus();
  }

  static bool HasTensor(const Item& item) {
    if (item.kind == Item::Kind::kList) return std::ranges::any_of(*item.items, HasTensor);
    return item.kind == Item::Kind::kTensor;
  }

  // Whether it computes with numbers in tensors, as traces do.
  bool WrapsNumbers(Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (In(node, i).as_tensor) return true;
    }
    return false;
  }

  absl::Status Compute(Node& node) {
    const std::string name = node.kind().toQualString();
    if (!name.starts_with("aten::") && !name.starts_with("prim::"))
      return Refuse(node, "the operator is not PyTorch's");
    std::vector<Item> inputs;
    for (size_t i = 0; i < node.inputs().size(); ++i) inputs.push_back(In(node, i));
    if (const std::string hidden = WhatRunsDoNotShow(node, inputs); !hidden.empty()) return Refuse(node, hidden);
    std::array<std::vector<c10::IValue>, kRuns> results;
    MEDLEY_RETURN_IF_ERROR(Execute(node, results));
    bool tensors = false;
    for (const c10::IValue& value : results[0]) tensors |= value.isTensor() || value.isTensorList();
    bool as_numbers = tensors;  // arithmetic of a trace on numbers in tensors
    for (size_t i = 0; i < node.inputs().size(); ++i) as_numbers = as_numbers && !HasTensor(In(node, i));
    for (const std::vector<c10::IValue>& run : results) {
      for (const c10::IValue& value : run) {
        as_numbers = as_numbers && value.isTensor() && value.toTensor().dim() == 0 &&
                     value.toTensor().scalar_type() == at::kLong;
      }
    }
    if (as_numbers && WrapsNumbers(node)) return OfNumbers(node, results, true);
    if (tensors) return AddCall(node, results);
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (HasTensor(In(node, i)) && !ShapeQueries().contains(name)) {
        return Refuse(node, "it takes a number out of a tensor, so what follows depends on data");
      }
    }
    return OfNumbers(node, results, false);
  }

  // Results that are no tensors: constants, or numbers that depend on the batch.
  absl::Status OfNumbers(Node& node, const std::array<std::vector<c10::IValue>, kRuns>& results, bool from_tensors) {
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      std::array<c10::IValue, kRuns> values;
      for (size_t run = 0; run < kRuns; ++run) {
        values[run] = from_tensors ? c10::IValue(results[run][i].toTensor().item<int64_t>()) : results[run][i];
      }
      if (values[0].isIntList()) {
        std::vector<Item> items;
        for (size_t k = 0; k < values[0].toIntVector().size(); ++k) {
          std::array<int64_t, kRuns> each = {};
          for (size_t run = 0; run < kRuns; ++run) each[run] = values[run].toIntVector().at(k);
          MEDLEY_ASSIGN_OR_RETURN(items.emplace_back(), NumberOf(node, each, static_cast<int64_t>(k)));
        }
        Set(node, i, List(std::move(items)));
      } else if (values[0].isInt()) {
        std::array<int64_t, kRuns> each = {};
        for (size_t run = 0; run < kRuns; ++run) each[run] = values[run].toInt();
        MEDLEY_ASSIGN_OR_RETURN(Item item, NumberOf(node, each, -1));
        item.as_tensor = from_tensors;  // also of a constant
        Set(node, i, std::move(item));
      } else if (values[0] == values[1] && values[1] == values[2]) {
        Set(node, i, Constant(values[0]));
      } else {
        return Refuse(node, "the result depends on the size of the batch in a way that is not followed");
      }
    }
    return absl::OkStatus();
  }

  // `dimension`: of a list of sizes; -1: the number is the result.
  absl::StatusOr<Item> NumberOf(Node& node, const std::array<int64_t, kRuns>& values, int64_t dimension) {
    if (values[0] == values[1] && values[1] == values[2]) return Constant(values[0]);
    Item item{.kind = Item::Kind::kNumber, .numbers = values};
    const std::string name = node.kind().toQualString();
    std::vector<std::pair<std::string, Item>> arguments;
    std::string target;
    if (name == "aten::size" || name == "aten::len") {
      target = "aten.sym_size.int";
      arguments = {{"self", In(node, 0)}};
      arguments.emplace_back("dim", name == "aten::len" ? Constant(int64_t{0})
                                    : dimension >= 0    ? Constant(dimension)
                                                        : In(node, 1));
      item.name = program_.NewName("sym_size");
    } else if (name == "aten::numel") {
      target = "aten.sym_numel.default";
      arguments = {{"self", In(node, 0)}};
      item.name = program_.NewName("sym_numel");
    } else if (const auto found = Arithmetic().find(name); found != Arithmetic().end()) {
      target = found->second;
      for (size_t i = 0; i < std::min<size_t>(2, node.inputs().size()); ++i) {
        arguments.emplace_back(i == 0 ? "a" : "b", In(node, i));
      }
      item.name = program_.NewName("number");
    } else {
      return Refuse(node, "the result depends on the size of the batch in a way that is not followed");
    }
    const Place place = PlaceOf(node);
    MEDLEY_RETURN_IF_ERROR(program_.AddNumber(item, place));
    MEDLEY_RETURN_IF_ERROR(program_.AddNode(target, arguments, {item}, place));
    return item;
  }

  // A call of ATen.
  absl::Status AddCall(Node& node, const std::array<std::vector<c10::IValue>, kRuns>& results) {
    const c10::FunctionSchema* const schema = node.maybeSchema();
    if (schema == nullptr) return Refuse(node, "the operator has no schema");
    const Place place = PlaceOf(node);
    std::string base = schema->name().substr(schema->name().find("::") + 2);
    std::vector<std::pair<std::string, Item>> arguments;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      Item item = In(node, i);
      if (const auto items = ItemsOf(item); items && item.kind == Item::Kind::kConstant) item = List(*items);
      if (item.as_tensor && item.kind == Item::Kind::kNumber) {
        return Refuse(node, "it computes with a size as if it were a tensor");
      }
      if (item.as_tensor) item = ConstantTensor(At(item, 0, c10::TensorType::get()).toTensor());
      arguments.emplace_back(schema->arguments()[i].name(), std::move(item));
    }
    std::string overload = schema->overload_name().empty() ? "default" : schema->overload_name();
    if (base == "_convolution" && !NameConvolution(base, overload, arguments)) {
      return Refuse(node, "its weight or form follows from data");
    }
    std::vector<Item> outputs;
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (results[0][i].isTensor()) {
        Item item{.kind = Item::Kind::kTensor, .name = program_.NewName(base)};
        for (size_t run = 0; run < kRuns; ++run) item.tensors[run] = results[run][i].toTensor();
        outputs.push_back(std::move(item));
      } else if (results[0][i].isTensorList()) {
        std::vector<Item> items;
        for (size_t k = 0; k < results[0][i].toTensorVector().size(); ++k) {
          Item item{.kind = Item::Kind::kTensor, .name = program_.NewName(base)};
          for (size_t run = 0; run < kRuns; ++run) {
            const std::vector<at::Tensor> list = results[run][i].toTensorVector();
            if (k >= list.size()) return Refuse(node, "the number of its results depends on the batch");
            item.tensors[run] = list[k];
          }
          items.push_back(std::move(item));
        }
        outputs.push_back(List(std::move(items)));
      } else {
        return Refuse(node, "one of its results is no tensor");
      }
    }
    for (const Item& output : outputs) {
      if (output.kind == Item::Kind::kTensor) MEDLEY_RETURN_IF_ERROR(program_.AddTensor(output, place));
      if (output.kind != Item::Kind::kList) continue;
      for (const Item& each : *output.items) MEDLEY_RETURN_IF_ERROR(program_.AddTensor(each, place));
    }
    MEDLEY_RETURN_IF_ERROR(program_.AddNode(fmt::format("aten.{}.{}", base, overload), arguments, outputs, place));
    for (size_t i = 0; i < outputs.size(); ++i) Set(node, i, outputs[i]);
    return absl::OkStatus();
  }

  const std::vector<SampleInput>& wanted_;
  ProgramWriter program_;
  std::map<const Value*, Item> values_;            // of the function that is followed
  std::map<const c10::TensorImpl*, Item> stored_;  // parameters, buffers and constants
  NamedTensors named_;
  std::map<std::string, Item> changed_;                       // buffers that forward has replaced, by path
  std::vector<std::pair<std::string, std::string>> modules_;  // paths and types, the innermost last
  int depth_ = 0;
  int steps_ = 0;
};

}  // namespace

absl::StatusOr<Entries> Lower(const std::string& file, const std::vector<SampleInput>& inputs) {
  const at::AutoGradMode mode(true);  // as in training: models ask for it
  try {
    std::istringstream stream(file);
    const torch::jit::Module module = torch::jit::load(stream, at::kCPU);
    return Lowering(inputs).Run(module);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return base::InvalidArgument("LibTorch {} cannot read the model: {}", TORCH_VERSION,
                                 text.substr(0, std::min<size_t>(text.find('\n'), 300)));
  }
}

}  // namespace medley::worker::torchscript
