#include "common/cel/type.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace medley::cel {
namespace {

constexpr std::array<std::string_view, 21> kReserved = {
    "true", "false",  "null", "in",   "as",      "break",     "const",  "continue", "else", "for",  "function",
    "if",   "import", "let",  "loop", "package", "namespace", "return", "var",      "void", "while"};

}  // namespace

std::string_view TypeName(Kind kind) {
  switch (kind) {
    case Kind::kDyn:
      return "dyn";
    case Kind::kNull:
      return "null_type";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kUint:
      return "uint";
    case Kind::kDouble:
      return "double";
    case Kind::kString:
      return "string";
    case Kind::kBytes:
      return "bytes";
    case Kind::kDuration:
      return "google.protobuf.Duration";
    case Kind::kTimestamp:
      return "google.protobuf.Timestamp";
    case Kind::kList:
      return "list";
    case Kind::kMap:
      return "map";
    case Kind::kObject:
      return "object";
    case Kind::kType:
      return "type";
    case Kind::kOptional:
      return "optional_type";
    case Kind::kQuantity:
      return "kubernetes.Quantity";
  }
  return "dyn";
}

TypePtr Simple(Kind kind) { return std::make_shared<const Type>(Type{.kind = kind}); }

TypePtr ListOf(TypePtr element) {
  return std::make_shared<const Type>(Type{.kind = Kind::kList, .element = std::move(element)});
}

std::string EscapeName(std::string_view property) {
  if (property.empty() || std::isdigit(static_cast<unsigned char>(property[0])) != 0) return "";
  if (std::ranges::find(kReserved, property) != kReserved.end()) return "__" + std::string(property) + "__";
  std::string name;
  for (size_t i = 0; i < property.size(); ++i) {
    const char c = property[i];
    if (c == '_' && i + 1 < property.size() && property[i + 1] == '_') {
      name += "__underscores__";
      ++i;
    } else if (c == '.') {
      name += "__dot__";
    } else if (c == '-') {
      name += "__dash__";
    } else if (c == '/') {
      name += "__slash__";
    } else if (c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else {
      return "";
    }
  }
  return name;
}

}  // namespace medley::cel
