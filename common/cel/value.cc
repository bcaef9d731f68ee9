#include "common/cel/value.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "common/base/clock.h"
#include "common/cel/duration.h"

namespace medley::cel {
namespace {

const Type& Dyn() {
  static const Type dyn;
  return dyn;
}

const Type* Element(const Type* type) { return type == nullptr ? nullptr : type->element.get(); }

Value ReadString(const std::string& text, Kind kind) {
  if (kind == Kind::kDuration) {
    int64_t nanoseconds = 0;
    if (!ParseDuration(text, nanoseconds)) return Value::Failed("Invalid duration " + text);
    return Value(Value::Duration{nanoseconds});
  }
  if (kind == Kind::kTimestamp) {
    const auto parsed = base::ParseTime(text);
    if (!parsed.ok()) return Value::Failed("Invalid date-time formatted string " + text);
    return Value(Value::Timestamp{parsed->time_since_epoch().count()});
  }
  if (kind == Kind::kBytes) return Value(Value::Bytes{std::make_shared<const std::string>(text)});
  return Value(Value::Text{text, nullptr});
}

Value ReadInteger(const Json& json, Kind kind) {
  if (kind == Kind::kDouble) return Value(json.get<double>());
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    return number <= INT64_MAX ? Value(static_cast<int64_t>(number)) : Value(static_cast<double>(number));
  }
  return Value(json.get<int64_t>());
}

bool Fits(const Json& json, Kind kind) {
  switch (kind) {
    case Kind::kBool:
      return json.is_boolean();
    case Kind::kInt:
      return json.is_number_integer();
    case Kind::kDouble:
      return json.is_number();
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kDuration:
    case Kind::kTimestamp:
      return json.is_string();
    case Kind::kList:
      return json.is_array();
    case Kind::kMap:
    case Kind::kObject:
      return json.is_object();
    default:
      return true;
  }
}

// As programs in Go call the type of a JSON value.
const char* GoType(const Json& json) {
  if (json.is_object()) return "map[string]interface {}";
  if (json.is_array()) return "[]interface {}";
  if (json.is_string()) return "string";
  if (json.is_boolean()) return "bool";
  return json.is_number_float() ? "float64" : "int64";
}

std::string WrongType(const Json& json, Kind kind) {
  if (kind == Kind::kList) return "invalid data, expected an array for the provided schema with type=array";
  if (kind == Kind::kMap || kind == Kind::kObject) {
    return "invalid data, expected a map for the provided schema with type=object";
  }
  const std::string_view want = kind == Kind::kDouble                       ? "float"
                                : kind == Kind::kInt || kind == Kind::kBool ? TypeName(kind)
                                                                            : "string";
  return fmt::format("invalid data, expected {}, got {}", want, GoType(json));
}

bool NumberOf(const Value& value, double& number) {
  if (const auto* i = value.As<int64_t>()) number = static_cast<double>(*i);
  if (const auto* u = value.As<uint64_t>()) number = static_cast<double>(*u);
  if (const auto* d = value.As<double>()) number = *d;
  return value.kind() == Kind::kInt || value.kind() == Kind::kUint || value.kind() == Kind::kDouble;
}

template <typename T>
int Order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Exact also where a double cannot hold the integer.
int CompareNumbers(const Value& a, const Value& b, bool& ordered) {
  const auto* ai = a.As<int64_t>();
  const auto* bi = b.As<int64_t>();
  if (ai != nullptr && bi != nullptr) return Order(*ai, *bi);
  const auto* au = a.As<uint64_t>();
  const auto* bu = b.As<uint64_t>();
  if (au != nullptr && bu != nullptr) return Order(*au, *bu);
  if (ai != nullptr && bu != nullptr) return *ai < 0 ? -1 : Order(static_cast<uint64_t>(*ai), *bu);
  if (au != nullptr && bi != nullptr) return *bi < 0 ? 1 : Order(*au, static_cast<uint64_t>(*bi));
  double x = 0;
  double y = 0;
  NumberOf(a, x);
  NumberOf(b, y);
  if (std::isnan(x) || std::isnan(y)) ordered = false;
  return Order(x, y);
}

const Type* TypeOf(const Value& value) {
  const auto* tree = value.As<Value::Tree>();
  return tree == nullptr || tree->type == nullptr ? &Dyn() : tree->type;
}

// The value of JSON `object` under the keys of a list of keyed objects, as text.
std::string KeysOf(const Json& object, const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    text += (object.is_object() && found != object.end() ? found->dump() : "?") + "/";
  }
  return text;
}

bool EqualKeyed(const Value::Tree& a, const Value::Tree& b, Budget& budget) {
  std::map<std::string, const Json*> items;
  for (const Json& item : *a.json) items[KeysOf(item, a.type->keys)] = &item;
  for (const Json& item : *b.json) {
    const auto found = items.find(KeysOf(item, a.type->keys));
    if (found == items.end()) return false;
    const Type* type = a.type->element.get();
    if (!Equal(Value::Read(*found->second, type), Value::Read(item, type), budget)) return false;
  }
  return true;
}

bool EqualSets(const Value::Tree& a, const Value::Tree& b, Budget& budget) {
  if (!budget.Spend(a.json->size() + b.json->size())) return false;
  std::map<std::string, bool> items;
  for (const Json& item : *a.json) items[item.dump()] = true;
  for (const Json& item : *b.json) {
    if (!items.contains(item.dump())) return false;
  }
  return true;
}

bool EqualLists(const Value& a, const Value& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  const auto* at = a.As<Value::Tree>();
  const auto* bt = b.As<Value::Tree>();
  if (at != nullptr && bt != nullptr && TypeOf(a)->order == Type::Order::kKeyed) return EqualKeyed(*at, *bt, budget);
  if (at != nullptr && bt != nullptr && TypeOf(a)->order == Type::Order::kSet) return EqualSets(*at, *bt, budget);
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equal(a.Item(i), b.Item(i), budget)) return false;
  }
  return true;
}

bool EqualMaps(const Value& a, const Value& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  const auto* at = a.As<Value::Tree>();
  const auto* bt = b.As<Value::Tree>();
  if (at != nullptr && bt != nullptr && at->json == bt->json) return true;
  bool equal = true;
  a.ForEach([&](const Value& key) {
    Value mine;
    Value theirs;
    equal = a.Find(key.text(), false, mine) && b.Find(key.text(), false, theirs) && Equal(mine, theirs, budget);
    return equal;
  });
  return equal;
}

}  // namespace

Value Value::OwnedText(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const std::string_view view = *owner;
  return Value(Text{view, std::move(owner)});
}

Value Value::Failed(std::string message, bool fatal) {
  return Value(Error{std::make_shared<const std::string>(std::move(message)), fatal});
}

Value Value::Read(const Json& json, const Type* type) {
  const Kind kind = type == nullptr ? Kind::kDyn : type->kind;
  if (json.is_null()) return Value();
  if (!Fits(json, kind)) {
    return Failed(WrongType(json, kind));
  }
  if (json.is_string()) return ReadString(json.get_ref<const std::string&>(), kind);
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_number()) return ReadInteger(json, kind);
  return Value(Tree{&json, type});
}

Kind Value::kind() const {
  struct Visitor {
    Kind operator()(Null) const { return Kind::kNull; }
    Kind operator()(bool) const { return Kind::kBool; }
    Kind operator()(int64_t) const { return Kind::kInt; }
    Kind operator()(uint64_t) const { return Kind::kUint; }
    Kind operator()(double) const { return Kind::kDouble; }
    Kind operator()(const Text&) const { return Kind::kString; }
    Kind operator()(const Bytes&) const { return Kind::kBytes; }
    Kind operator()(Duration) const { return Kind::kDuration; }
    Kind operator()(Timestamp) const { return Kind::kTimestamp; }
    Kind operator()(Quantity) const { return Kind::kQuantity; }
    Kind operator()(const Tree& tree) const { return tree.json->is_array() ? Kind::kList : Kind::kMap; }
    Kind operator()(const List&) const { return Kind::kList; }
    Kind operator()(const Map&) const { return Kind::kMap; }
    Kind operator()(const Optional&) const { return Kind::kOptional; }
    Kind operator()(Kind) const { return Kind::kType; }
    Kind operator()(const Error&) const { return Kind::kDyn; }
  };
  return std::visit(Visitor(), data_);
}

std::string_view Value::text() const {
  const auto* text = As<Text>();
  return text == nullptr ? std::string_view() : text->view;
}

size_t Value::size() const {
  if (const auto* tree = As<Tree>()) return tree->json->size();
  if (const auto* list = As<List>()) return (*list)->size();
  if (const auto* map = As<Map>()) return (*map)->all.size();
  return 0;
}

Value Value::Item(size_t index) const {
  if (const auto* list = As<List>()) return (**list)[index];
  const auto& tree = std::get<Tree>(data_);
  return Read((*tree.json)[index], Element(tree.type));
}

bool Value::Find(std::string_view key, bool name, Value& found) const {
  if (const auto* map = As<Map>()) {
    for (const auto& [each, value] : (*map)->all) {
      if (each.kind() != Kind::kString || each.text() != key) continue;
      found = value;
      return true;
    }
    return false;
  }
  const auto* tree = As<Tree>();
  if (tree == nullptr || !tree->json->is_object()) return false;
  const Type* type = Element(tree->type);
  std::string_view property = key;
  if (tree->type != nullptr && tree->type->kind == Kind::kObject) {
    const auto field = tree->type->fields.find(name ? std::string(key) : EscapeName(key));
    // A property that the schema does not name is only compared, never selected.
    type = field == tree->type->fields.end() ? nullptr : field->second.type.get();
    if (field != tree->type->fields.end()) property = field->second.name;
    if (field == tree->type->fields.end() && name) return false;
  }
  const auto it = tree->json->find(property);
  if (it == tree->json->end()) return false;
  found = Read(*it, type);
  return true;
}

void Value::ForEach(absl::FunctionRef<bool(const Value&)> visit) const {
  if (is_list()) {
    for (size_t i = 0; i < size(); ++i) {
      if (!visit(Item(i))) return;
    }
  } else if (const auto* map = As<Map>()) {
    for (const auto& entry : (*map)->all) {
      if (!visit(entry.first)) return;
    }
  } else if (const auto* tree = As<Tree>()) {
    for (auto it = tree->json->begin(); it != tree->json->end(); ++it) {
      if (!visit(Value(Text{it.key(), nullptr}))) return;
    }
  }
}

bool Equal(const Value& a, const Value& b, Budget& budget) {
  if (!budget.Spend(1 + a.text().size() / 10)) return false;
  double ignored = 0;
  if (NumberOf(a, ignored) && NumberOf(b, ignored)) {
    bool ordered = true;
    return CompareNumbers(a, b, ordered) == 0 && ordered;
  }
  if (a.kind() != b.kind() || a.is_error() || b.is_error()) return false;
  switch (a.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return *a.As<bool>() == *b.As<bool>();
    case Kind::kType:
      return *a.As<Kind>() == *b.As<Kind>();
    case Kind::kList:
      return EqualLists(a, b, budget);
    case Kind::kMap:
      return EqualMaps(a, b, budget);
    case Kind::kOptional: {
      const auto& x = a.As<Value::Optional>()->value;
      const auto& y = b.As<Value::Optional>()->value;
      return (x == nullptr) == (y == nullptr) && (x == nullptr || Equal(*x, *y, budget));
    }
    default: {
      bool ordered = true;
      return Compare(a, b, ordered) == 0 && ordered;
    }
  }
}

int Compare(const Value& a, const Value& b, bool& ordered) {
  double ignored = 0;
  if (NumberOf(a, ignored) && NumberOf(b, ignored)) return CompareNumbers(a, b, ordered);
  if (a.kind() == b.kind()) {
    switch (a.kind()) {
      case Kind::kBool:
        return Order(*a.As<bool>(), *b.As<bool>());
      case Kind::kString:
        return a.text().compare(b.text());
      case Kind::kBytes:
        return a.As<Value::Bytes>()->data->compare(*b.As<Value::Bytes>()->data);
      case Kind::kDuration:
        return Order(a.As<Value::Duration>()->nanoseconds, b.As<Value::Duration>()->nanoseconds);
      case Kind::kTimestamp:
        return Order(a.As<Value::Timestamp>()->nanoseconds, b.As<Value::Timestamp>()->nanoseconds);
      case Kind::kQuantity:
        return Order(a.As<Value::Quantity>()->value, b.As<Value::Quantity>()->value);
      default:
        break;
    }
  }
  ordered = false;
  return 0;
}

}  // namespace medley::cel
