// Values of CEL expressions. JSON is not copied: a value refers to the JSON that it was read from, which must outlive
// it. Not thread-safe while it is changed; nothing here changes one that is shared.
#pragma once

#include <absl/functional/function_ref.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/cel/budget.h"
#include "common/cel/type.h"

namespace medley::cel {

using Json = nlohmann::json;

class Value {
 public:
  struct Null {};
  struct Bytes {
    std::shared_ptr<const std::string> data;
  };
  struct Duration {
    int64_t nanoseconds = 0;
  };
  struct Timestamp {
    int64_t nanoseconds = 0;  // since 1970 in UTC
  };
  struct Quantity {
    double value = 0;
  };
  // Text of JSON and of literals is referred to; computed text is owned.
  struct Text {
    std::string_view view;
    std::shared_ptr<const std::string> owner;
  };
  // An object or list of JSON. `type` may be null: dyn.
  struct Tree {
    const Json* json = nullptr;
    const Type* type = nullptr;
  };
  using List = std::shared_ptr<const std::vector<Value>>;
  struct Entries;
  using Map = std::shared_ptr<const Entries>;
  struct Optional {
    std::shared_ptr<const Value> value;  // null: none
  };
  // What went wrong, in the words of the API server, as in "no such key: x". `fatal`: the budget is spent, so that no
  // other operand may hide the error.
  struct Error {
    std::shared_ptr<const std::string> message;
    bool fatal = false;
  };

  Value() = default;
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(uint64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  template <typename T>
  requires(!std::is_same_v<T, Value> && !std::is_arithmetic_v<T> && !std::is_pointer_v<T>) explicit Value(T value)
      : data_(std::move(value)) {}

  static Value OwnedText(std::string text);
  static Value Failed(std::string message, bool fatal = false);
  static Value NoOverload() { return Failed("no such overload"); }
  // How `json` reads as `type` (null: dyn). An Error if it has another type.
  static Value Read(const Json& json, const Type* type);

  Kind kind() const;
  bool is_error() const { return std::holds_alternative<Error>(data_); }
  const Error& error() const { return std::get<Error>(data_); }
  bool is_list() const { return kind() == Kind::kList; }
  bool is_map() const { return kind() == Kind::kMap; }
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&data_);
  }
  // The view of a Text; empty for everything else.
  std::string_view text() const;

  // For lists and maps; 0 for everything else.
  size_t size() const;
  // Item `index` of a list, which must have it.
  Value Item(size_t index) const;
  // The value under `key` of a map or object; false: there is none. `name`: the escaped name, as after a dot.
  bool Find(std::string_view key, bool name, Value& found) const;
  // Calls `visit` with each item of a list or each key of a map until it returns false.
  void ForEach(absl::FunctionRef<bool(const Value&)> visit) const;

 private:
  std::variant<Null, bool, int64_t, uint64_t, double, Text, Bytes, Duration, Timestamp, Quantity, Tree, List, Map,
               Optional, Kind, Error>
      data_;
};

// A map that an expression has made; in the order of the source. Keys are unique.
struct Value::Entries {
  std::vector<std::pair<Value, Value>> all;
};

// Whether both are the same; numbers of different types are compared by value, other types are never the same. False
// when the budget is spent, of which each value that is compared takes a unit.
bool Equal(const Value& a, const Value& b, Budget& budget);

// Less than 0, 0, more than 0; false in `ordered`: these two have no order.
int Compare(const Value& a, const Value& b, bool& ordered);

}  // namespace medley::cel
