// Static types of CEL expressions, as an OpenAPI schema declares them. They say how a JSON value reads (the integer 1
// of a field of type number is the double 1.0) and which fields an expression may name. Immutable values, thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cel {

enum class Kind {
  kDyn,  // any; known when the expression is evaluated
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kList,
  kMap,     // from string to `element`
  kObject,  // with `fields`
  kType,
  kOptional,  // of `element`
  kQuantity,
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

struct Type {
  struct Field {
    std::string name;  // in JSON
    TypePtr type;
  };
  // How two lists compare: sets and lists of keyed objects do without their order.
  enum class Order { kList, kSet, kKeyed };

  Kind kind = Kind::kDyn;
  TypePtr element;                                   // of lists, maps and optionals; null: kDyn
  std::map<std::string, Field, std::less<>> fields;  // of objects, by the escaped name
  Order order = Order::kList;
  std::vector<std::string> keys;  // of kKeyed
};

// "string", "list", "google.protobuf.Duration": as CEL names the type in errors.
std::string_view TypeName(Kind kind);

TypePtr Simple(Kind kind);
TypePtr ListOf(TypePtr element);

// The name by which an expression reaches a JSON property: "a-b" is a__dash__b, "namespace" is __namespace__. Empty: no
// expression can name it.
std::string EscapeName(std::string_view property);

}  // namespace medley::cel
