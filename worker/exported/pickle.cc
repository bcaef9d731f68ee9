#include "worker/exported/pickle.h"

#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace medley::worker::exported {
namespace {

constexpr size_t kMostValues = 1'000'000;
constexpr uint64_t kLongestText = 1 << 16;
constexpr size_t kMostText = size_t{1} << 26;  // of all values: a value may copy a text that the file holds once
constexpr size_t kMostAxes = 64;

// Opcodes of the format (Python's pickletools), those that torch.save uses with protocols 2 to 5.
enum class Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kReduce = 'R',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPersId = 'Q',
  kBuild = 'b',
  kProto = 0x80,
  kFrame = 0x95,
};

struct Value;
using Ref = Value*;  // of the machine

struct Mark {};
struct Nothing {};
struct Sequence {
  std::vector<Ref> items;  // of a list or a tuple
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
struct Global {
  std::string name;
};
struct Storage {
  ScalarType type = ScalarType::kFloat32;
  std::string key;
  int64_t elements = 0;
};

struct Value {
  std::variant<Mark, Nothing, bool, int64_t, double, std::string, Sequence, Dict, Global, Storage, PickledTensor> is;
};

std::optional<ScalarType> StorageType(const std::string& name) {
  static const std::map<std::string, ScalarType> kTypes = {{"torch.FloatStorage", ScalarType::kFloat32},
                                                           {"torch.DoubleStorage", ScalarType::kFloat64},
                                                           {"torch.HalfStorage", ScalarType::kFloat16},
                                                           {"torch.BFloat16Storage", ScalarType::kBFloat16},
                                                           {"torch.LongStorage", ScalarType::kInt64},
                                                           {"torch.IntStorage", ScalarType::kInt32},
                                                           {"torch.ShortStorage", ScalarType::kInt16},
                                                           {"torch.CharStorage", ScalarType::kInt8},
                                                           {"torch.ByteStorage", ScalarType::kUInt8},
                                                           {"torch.BoolStorage", ScalarType::kBool},
                                                           {"torch.ComplexFloatStorage", ScalarType::kComplex64},
                                                           {"torch.ComplexDoubleStorage", ScalarType::kComplex128}};
  const auto found = kTypes.find(name);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

constexpr char kTensor[] = "torch._utils._rebuild_tensor_v2";
constexpr char kParameter[] = "torch._utils._rebuild_parameter";
constexpr char kOrderedDict[] = "collections.OrderedDict";

bool Known(const std::string& name) {
  return name == kTensor || name == kParameter || name == kOrderedDict || StorageType(name).has_value();
}

class Machine {
 public:
  explicit Machine(std::string_view pickle) : rest_(pickle), size_(pickle.size()) {}

  // The result belongs to the machine.
  absl::StatusOr<Ref> Run() {
    while (true) {
      MEDLEY_ASSIGN_OR_RETURN(const std::string_view code, Take(1));
      const auto op = static_cast<Op>(static_cast<uint8_t>(code[0]));
      if (op == Op::kStop) return Pop();
      MEDLEY_RETURN_IF_ERROR(Execute(op));
      if (values_.size() > kMostValues || stack_.size() > kMostValues || ++steps_ > 8 * kMostValues) {
        return Wrong("it has too many values");
      }
    }
  }

 private:
  absl::Status Wrong(std::string_view what) const {
    return base::InvalidArgument("the pickle of the weights cannot be read at byte {}: {}", size_ - rest_.size(), what);
  }
  absl::StatusOr<std::string_view> Take(uint64_t count) {
    if (count > rest_.size()) return Wrong("it ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  // Little-endian.
  absl::StatusOr<uint64_t> Number(size_t bytes) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string_view text, Take(bytes));
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = (value << 8) | static_cast<uint8_t>(text[i]);
    return value;
  }
  absl::StatusOr<std::string> Line() {
    const size_t end = rest_.substr(0, 1024).find('\n');
    if (end == std::string_view::npos) return Wrong("a name has no end");
    std::string line(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return line;
  }
  static size_t TextOf(const std::string& text) { return text.size(); }
  static size_t TextOf(const Global& global) { return global.name.size(); }
  static size_t TextOf(const Storage& storage) { return storage.key.size(); }
  static size_t TextOf(const PickledTensor& tensor) { return tensor.key.size(); }
  template <typename T>
  static size_t TextOf(const T&) {
    return 0;
  }

  template <typename T>
  absl::Status Push(T value) {
    text_ += TextOf(value);
    if (text_ > kMostText) return Wrong("its values have too much text");
    stack_.push_back(&values_.emplace_back(Value{std::move(value)}));
    return absl::OkStatus();
  }
  absl::StatusOr<Ref> Pop() {
    if (stack_.empty()) return Wrong("a value is missing");
    const Ref top = stack_.back();
    stack_.pop_back();
    return top;
  }
  // What lies above the last mark.
  absl::StatusOr<std::vector<Ref>> PopMark() {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (!std::holds_alternative<Mark>(stack_[i]->is)) continue;
      std::vector<Ref> items(stack_.begin() + static_cast<ptrdiff_t>(i) + 1, stack_.end());
      stack_.resize(i);
      return items;
    }
    return Wrong("a mark is missing");
  }
  absl::Status PushTuple(size_t count) {
    if (stack_.size() < count) return Wrong("a value is missing");
    Sequence tuple;
    tuple.items.assign(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return Push(std::move(tuple));
  }
  template <typename T>
  absl::StatusOr<T*> Top() {
    T* found = stack_.empty() ? nullptr : std::get_if<T>(&stack_.back()->is);
    if (found == nullptr) return Wrong("a list or a dictionary is missing");
    return found;
  }

  absl::Status Execute(Op op);
  absl::Status Collect(Op op);
  absl::Status PushGlobal(const std::string& name);
  absl::Status Remember(uint64_t number);
  absl::Status Recall(uint64_t number);
  absl::Status Persistent();
  absl::Status Reduce();
  absl::StatusOr<PickledTensor> Tensor(const std::vector<Ref>& arguments) const;
  absl::StatusOr<std::vector<int64_t>> Numbers(Ref value) const;

  std::string_view rest_;
  const size_t size_;
  std::deque<Value> values_;
  std::vector<Ref> stack_;
  std::map<uint64_t, Ref> memo_;
  size_t steps_ = 0;
  size_t text_ = 0;  // bytes
};

absl::Status Machine::Execute(Op op) {
  switch (op) {
    case Op::kProto:
      return Take(1).status();
    case Op::kFrame:
      return Take(8).status();
    case Op::kMark:
      return Push(Mark{});
    case Op::kNone:
      return Push(Nothing{});
    case Op::kNewTrue:
      return Push(true);
    case Op::kNewFalse:
      return Push(false);
    case Op::kBinInt: {
      MEDLEY_ASSIGN_OR_RETURN(const uint64_t value, Number(4));
      return Push(int64_t{static_cast<int32_t>(static_cast<uint32_t>(value))});
    }
    case Op::kBinInt1:
    case Op::kBinInt2: {
      MEDLEY_ASSIGN_OR_RETURN(const uint64_t value, Number(op == Op::kBinInt1 ? 1 : 2));
      return Push(static_cast<int64_t>(value));
    }
    case Op::kLong1: {
      MEDLEY_ASSIGN_OR_RETURN(const uint64_t bytes, Number(1));
      if (bytes > 8) return Wrong("a number is too large");
      MEDLEY_ASSIGN_OR_RETURN(uint64_t value, Number(bytes));
      if (bytes > 0 && bytes < 8 && (value >> (8 * bytes - 1)) != 0) value |= ~uint64_t{0} << (8 * bytes);  // negative
      return Push(static_cast<int64_t>(value));
    }
    case Op::kBinFloat: {
      MEDLEY_ASSIGN_OR_RETURN(const std::string_view text, Take(8));
      uint64_t bits = 0;
      for (const char byte : text) bits = (bits << 8) | static_cast<uint8_t>(byte);
      double value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return Push(value);
    }
    case Op::kBinUnicode:
    case Op::kShortBinUnicode: {
      MEDLEY_ASSIGN_OR_RETURN(const uint64_t bytes, Number(op == Op::kBinUnicode ? 4 : 1));
      if (bytes > kLongestText) return Wrong("a text is too long");
      MEDLEY_ASSIGN_OR_RETURN(const std::string_view text, Take(bytes));
      return Push(std::string(text));
    }
    case Op::kGlobal: {
      MEDLEY_ASSIGN_OR_RETURN(const std::string module, Line());
      MEDLEY_ASSIGN_OR_RETURN(const std::string name, Line());
      return PushGlobal(module + "." + name);
    }
    case Op::kStackGlobal: {
      MEDLEY_ASSIGN_OR_RETURN(const Ref name, Pop());
      MEDLEY_ASSIGN_OR_RETURN(const Ref module, Pop());
      const auto* first = std::get_if<std::string>(&module->is);
      const auto* second = std::get_if<std::string>(&name->is);
      if (first == nullptr || second == nullptr) return Wrong("a name is no text");
      return PushGlobal(*first + "." + *second);
    }
    case Op::kBinPut:
    case Op::kLongBinPut: {
      MEDLEY_ASSIGN_OR_RETURN(const uint64_t number, Number(op == Op::kBinPut ? 1 : 4));
      return Remember(number);
    }
    case Op::kMemoize:
      return Remember(memo_.size());
    case Op::kBinGet:
    case Op::kLongBinGet: {
      MEDLEY_ASSIGN_OR_RETURN(const uint64_t number, Number(op == Op::kBinGet ? 1 : 4));
      return Recall(number);
    }
    case Op::kBinPersId:
      return Persistent();
    case Op::kReduce:
      return Reduce();
    case Op::kBuild: {  // attributes of a dictionary, such as the versions of modules
      MEDLEY_RETURN_IF_ERROR(Pop().status());
      return Top<Dict>().status();
    }
    default:
      return Collect(op);
  }
}

absl::Status Machine::Collect(Op op) {
  switch (op) {
    case Op::kEmptyDict:
      return Push(Dict{});
    case Op::kEmptyList:
    case Op::kEmptyTuple:
      return Push(Sequence{});
    case Op::kTuple1:
      return PushTuple(1);
    case Op::kTuple2:
      return PushTuple(2);
    case Op::kTuple3:
      return PushTuple(3);
    case Op::kTuple: {
      MEDLEY_ASSIGN_OR_RETURN(std::vector<Ref> items, PopMark());
      return Push(Sequence{std::move(items)});
    }
    case Op::kAppend: {
      MEDLEY_ASSIGN_OR_RETURN(const Ref item, Pop());
      MEDLEY_ASSIGN_OR_RETURN(Sequence * list, Top<Sequence>());
      list->items.push_back(item);
      return absl::OkStatus();
    }
    case Op::kAppends: {
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<Ref> items, PopMark());
      MEDLEY_ASSIGN_OR_RETURN(Sequence * list, Top<Sequence>());
      list->items.insert(list->items.end(), items.begin(), items.end());
      return absl::OkStatus();
    }
    case Op::kSetItem: {
      MEDLEY_ASSIGN_OR_RETURN(const Ref item, Pop());
      MEDLEY_ASSIGN_OR_RETURN(const Ref key, Pop());
      MEDLEY_ASSIGN_OR_RETURN(Dict * dict, Top<Dict>());
      dict->items.emplace_back(key, item);
      return absl::OkStatus();
    }
    case Op::kSetItems: {
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<Ref> items, PopMark());
      MEDLEY_ASSIGN_OR_RETURN(Dict * dict, Top<Dict>());
      if (items.size() % 2 != 0) return Wrong("a key has no value");
      for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
      return absl::OkStatus();
    }
    default:
      return Wrong(fmt::format("the opcode {:#04x} is not one of those that weights need", static_cast<int>(op)));
  }
}

absl::Status Machine::PushGlobal(const std::string& name) {
  if (!Known(name))
    return base::InvalidArgument("the pickle of the weights wants to call '{}', which is not allowed", name);
  return Push(Global{name});
}

absl::Status Machine::Remember(uint64_t number) {
  if (stack_.empty()) return Wrong("a value is missing");
  memo_[number] = stack_.back();
  return absl::OkStatus();
}

absl::Status Machine::Recall(uint64_t number) {
  const auto found = memo_.find(number);
  if (found == memo_.end()) return Wrong("it refers to a value that it has not");
  stack_.push_back(found->second);
  return absl::OkStatus();
}

// ("storage", torch.FloatStorage, "0", "cpu", 12)
absl::Status Machine::Persistent() {
  MEDLEY_ASSIGN_OR_RETURN(const Ref id, Pop());
  const auto* tuple = std::get_if<Sequence>(&id->is);
  if (tuple == nullptr || tuple->items.size() < 5) return Wrong("the name of a storage has another form");
  const auto* kind = std::get_if<std::string>(&tuple->items[0]->is);
  const auto* type = std::get_if<Global>(&tuple->items[1]->is);
  const auto* key = std::get_if<std::string>(&tuple->items[2]->is);
  const auto* elements = std::get_if<int64_t>(&tuple->items[4]->is);
  if (kind == nullptr || *kind != "storage" || type == nullptr || key == nullptr || elements == nullptr) {
    return Wrong("the name of a storage has another form");
  }
  const auto scalar = StorageType(type->name);
  if (!scalar.has_value()) return Wrong("a storage has a type that is not known");
  return Push(Storage{*scalar, *key, *elements});
}

absl::StatusOr<std::vector<int64_t>> Machine::Numbers(Ref value) const {
  const auto* sequence = std::get_if<Sequence>(&value->is);
  if (sequence == nullptr || sequence->items.size() > kMostAxes) return Wrong("a shape is no tuple of numbers");
  std::vector<int64_t> numbers;
  for (const Ref item : sequence->items) {
    const auto* number = std::get_if<int64_t>(&item->is);
    if (number == nullptr || *number < 0) return Wrong("a shape is no tuple of numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

// (storage, offset, sizes, strides, requires_grad, hooks)
absl::StatusOr<PickledTensor> Machine::Tensor(const std::vector<Ref>& arguments) const {
  if (arguments.size() < 4) return Wrong("a tensor has too few arguments");
  const auto* storage = std::get_if<Storage>(&arguments[0]->is);
  const auto* offset = std::get_if<int64_t>(&arguments[1]->is);
  if (storage == nullptr || offset == nullptr) return Wrong("a tensor has no storage");
  PickledTensor tensor;
  tensor.key = storage->key;
  tensor.elements = storage->elements;
  tensor.tensor.type = storage->type;
  tensor.tensor.offset = *offset;
  MEDLEY_ASSIGN_OR_RETURN(tensor.tensor.sizes, Numbers(arguments[2]));
  MEDLEY_ASSIGN_OR_RETURN(tensor.tensor.strides, Numbers(arguments[3]));
  if (tensor.tensor.sizes.size() != tensor.tensor.strides.size())
    return Wrong("a tensor has another number of strides");
  const auto* gradient = arguments.size() > 4 ? std::get_if<bool>(&arguments[4]->is) : nullptr;
  tensor.tensor.requires_grad = gradient != nullptr && *gradient;
  return tensor;
}

absl::Status Machine::Reduce() {
  MEDLEY_ASSIGN_OR_RETURN(const Ref arguments, Pop());
  MEDLEY_ASSIGN_OR_RETURN(const Ref callee, Pop());
  const auto* tuple = std::get_if<Sequence>(&arguments->is);
  const auto* global = std::get_if<Global>(&callee->is);
  if (tuple == nullptr || global == nullptr) return Wrong("a call has another form");
  if (global->name == kOrderedDict) {
    if (!tuple->items.empty()) return Wrong("a dictionary is made in a way that is not known");
    return Push(Dict{});
  }
  if (global->name == kTensor) {
    MEDLEY_ASSIGN_OR_RETURN(PickledTensor tensor, Tensor(tuple->items));
    return Push(std::move(tensor));
  }
  if (global->name == kParameter) {  // (tensor, requires_grad, hooks)
    const auto* inner = tuple->items.empty() ? nullptr : std::get_if<PickledTensor>(&tuple->items[0]->is);
    if (inner == nullptr) return Wrong("a parameter has no tensor");
    PickledTensor tensor = *inner;
    const auto* gradient = tuple->items.size() > 1 ? std::get_if<bool>(&tuple->items[1]->is) : nullptr;
    tensor.tensor.requires_grad = gradient == nullptr || *gradient;
    return Push(std::move(tensor));
  }
  return Wrong("a storage is called");
}

}  // namespace

absl::StatusOr<std::map<std::string, PickledTensor>> ReadPickledTensors(std::string_view pickle) {
  Machine machine(pickle);
  MEDLEY_ASSIGN_OR_RETURN(const Ref root, machine.Run());
  const auto* dict = std::get_if<Dict>(&root->is);
  if (dict == nullptr) return base::InvalidArgument("the pickle of the weights is no dictionary");
  std::map<std::string, PickledTensor> tensors;
  for (const auto& [key, value] : dict->items) {
    const auto* name = std::get_if<std::string>(&key->is);
    const auto* tensor = std::get_if<PickledTensor>(&value->is);
    if (name != nullptr && tensor != nullptr) tensors[*name] = *tensor;
  }
  return tensors;
}

}  // namespace medley::worker::exported
