#include "kube/schema/validate.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cmath>
#include <map>
#include <optional>

#include "common/base/go_text.h"
#include "kube/schema/formats.h"

namespace medley::kube {
namespace {

// One value that is being checked; keeps the signatures below short.
struct SchemaCheck {
  const Json& value;
  const Schema& schema;
  const Json* old;
  const std::string& path;
  FieldErrors* errors;

  std::string In() const { return path + " in body"; }
  const Json* Keyword(const char* name) const {
    const auto it = schema.json().find(name);
    return it == schema.json().end() ? nullptr : &*it;
  }
  void Push(FieldError error) const {
    if (errors->size() < kMaxFieldErrors) errors->push_back(std::move(error));
  }
  void Add(std::string reason, std::string what) const { Push({std::move(reason), path, std::move(what)}); }
  void Bad(const std::string& what) const { Push(InvalidValue(path, value, what)); }
  // The real server names no field here.
  void BadWhole(const std::string& what) const { Push(InvalidValue("<nil>", "", base::GoQuote(path) + " " + what)); }
};

bool IsInteger(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

const char* JsonTypeName(const Json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.type_name();
}

// The name of the type that the value should have; empty: it fits.
std::string WantedType(const SchemaCheck& c) {
  const std::string_view want = c.schema.type();
  const bool either = c.schema.int_or_string();
  if (c.value.is_null()) {
    if (c.schema.Flag("nullable") || c.schema.untyped() || (want.empty() && !either)) return "";
  } else if (either) {
    if (IsInteger(c.value) || c.value.is_string()) return "";
  } else if (c.schema.quantity()) {
    if (c.value.is_number() || c.value.is_string()) return "";
  }
  if (either) return "integer,string";
  const bool fits = want.empty() || (want == "object" && c.value.is_object()) ||
                    (want == "array" && c.value.is_array()) || (want == "string" && c.value.is_string()) ||
                    (want == "boolean" && c.value.is_boolean()) || (want == "number" && c.value.is_number()) ||
                    (want == "integer" && IsInteger(c.value));
  return fits ? "" : std::string(want);
}

void CheckType(const SchemaCheck& c) {
  const std::string want = WantedType(c);
  if (want.empty()) return;
  const char* is = JsonTypeName(c.value);
  c.Add("FieldValueTypeInvalid",
        fmt::format("Invalid value: \"{}\": {} must be of type {}: \"{}\"", is, c.In(), want, is));
}

void CheckEnum(const SchemaCheck& c) {
  const Json* allowed = c.Keyword("enum");
  if (allowed == nullptr || !allowed->is_array() || allowed->empty()) return;
  std::string names;
  for (const Json& one : *allowed) {
    if (one == c.value) return;
    names += (names.empty() ? "" : ", ") + base::GoQuote(one.is_string() ? one.get<std::string>() : ShownValue(one));
  }
  c.Add("FieldValueNotSupported",
        fmt::format("Unsupported value: {}: supported values: {}", ShownValue(c.value), names));
}

// As the real server, which compares integers with the integer part of a bound.
void CheckBound(const SchemaCheck& c, const char* keyword, const char* exclusive_keyword, int sign) {
  const Json* given = c.Keyword(keyword);
  if (given == nullptr || !given->is_number()) return;
  const bool exclusive = c.schema.Flag(exclusive_keyword);
  bool beyond = false;
  std::string bound;
  if (c.value.is_number_integer()) {
    const auto limit = static_cast<int64_t>(given->get<double>());
    const auto value = c.value.get<int64_t>();
    beyond = sign > 0 ? value > limit : value < limit;
    beyond = beyond || (exclusive && value == limit);
    bound = std::to_string(limit);
  } else {
    const auto limit = given->get<double>();
    const auto value = c.value.get<double>();
    beyond = sign > 0 ? value > limit : value < limit;
    beyond = beyond || (exclusive && value == limit);
    bound = base::GoNumber(limit);
  }
  if (!beyond) return;
  c.Bad(fmt::format("{} should be {} than {}{}", c.In(), sign > 0 ? "less" : "greater", exclusive ? "" : "or equal to ",
                    bound));
}

void CheckNumber(const SchemaCheck& c) {
  if (const Json* step = c.Keyword("multipleOf"); step != nullptr && step->is_number() && step->get<double>() > 0) {
    const double ratio = c.value.get<double>() / step->get<double>();
    if (std::fabs(ratio - std::round(ratio)) > 1e-9) {
      c.Bad(fmt::format("{} should be a multiple of {}", c.In(), base::GoNumber(step->get<double>())));
    }
  }
  CheckBound(c, "minimum", "exclusiveMinimum", -1);
  CheckBound(c, "maximum", "exclusiveMaximum", 1);
}

// The limit in `keyword` if it is a valid count, else -1.
int64_t Count(const SchemaCheck& c, const char* keyword) {
  const Json* bound = c.Keyword(keyword);
  return bound != nullptr && bound->is_number_integer() ? bound->get<int64_t>() : -1;
}

int64_t Runes(const std::string& text) {
  int64_t n = 0;
  for (const char ch : text) n += (static_cast<unsigned char>(ch) & 0xC0) != 0x80;
  return n;
}

// The first fault counts.
void CheckLengthAndPattern(const SchemaCheck& c, const std::string& text) {
  const int64_t low = Count(c, "minLength");
  const int64_t high = Count(c, "maxLength");
  if (high >= 0 && Runes(text) > high) {
    c.Add("FieldValueTooLong", fmt::format("Too long: may not be more than {} byte{}", high, high == 1 ? "" : "s"));
    return;
  }
  if (low >= 0 && Runes(text) < low) {
    c.Bad(fmt::format("{} should be at least {} chars long", c.In(), low));
    return;
  }
  const Json* pattern = c.Keyword("pattern");
  if (pattern == nullptr || !pattern->is_string()) return;
  const RE2 re(pattern->get_ref<const std::string&>(), RE2::Quiet);
  if (re.ok() && !RE2::PartialMatch(text, re)) {
    c.Bad(fmt::format("{} should match '{}'", c.In(), pattern->get<std::string>()));
  }
}

void CheckString(const SchemaCheck& c) {
  const std::string& text = c.value.get_ref<const std::string&>();
  CheckLengthAndPattern(c, text);
  if (const Json* format = c.Keyword("format"); format != nullptr && format->is_string()) {
    const auto& name = format->get_ref<const std::string&>();
    if (!HasFormat(name, text)) {
      c.Add("FieldValueTypeInvalid",
            fmt::format("Invalid value: {0}: {1} must be of type {2}: {0}", base::GoQuote(text), c.In(), name));
    }
  }
}

// The real server reports the number of items, not the items.
void CheckCount(const SchemaCheck& c, const char* low_keyword, const char* high_keyword, const char* things) {
  const auto size = static_cast<int64_t>(c.value.size());
  const int64_t low = Count(c, low_keyword);
  const int64_t high = Count(c, high_keyword);
  if (low >= 0 && size < low) {
    c.Push(InvalidValue(c.path, size, fmt::format("{} should have at least {} {}", c.In(), low, things)));
  }
  if (high >= 0 && size > high) {
    c.Add("FieldValueTooMany",
          fmt::format("Too many: {}: must have at most {} item{}", size, high, high == 1 ? "" : "s"));
  }
}

void CheckArray(const SchemaCheck& c) {
  const Schema items = c.schema.Items();
  std::optional<KeyedItems> before;
  if (c.schema.list_type() == Schema::ListType::kMap && c.old != nullptr) {
    before.emplace(*c.old, c.schema.list_map_keys());
  }
  for (size_t i = 0; items && i < c.value.size() && c.errors->size() < kMaxFieldErrors; ++i) {
    const Json* old = before ? before->Find(c.value[i]) : nullptr;
    ValidateSchema(c.value[i], items, old, fmt::format("{}[{}]", c.path, i), c.errors);
  }
  CheckCount(c, "minItems", "maxItems", "items");
}

void CheckObject(const SchemaCheck& c) {
  CheckCount(c, "minProperties", "maxProperties", "properties");
  const bool correlates = c.old != nullptr && c.old->is_object() && !c.schema.map_atomic();
  for (const auto& [name, field] : c.value.items()) {
    if (c.errors->size() >= kMaxFieldErrors) return;
    const Schema schema = c.schema.Field(name);
    if (!schema) continue;
    const auto before = correlates ? c.old->find(name) : Json::const_iterator();
    const Json* old = correlates && before != c.old->end() ? &*before : nullptr;
    ValidateSchema(field, schema, old, c.path.empty() ? name : c.path + "." + name, c.errors);
  }
  const Json* required = c.Keyword("required");
  if (required == nullptr || !required->is_array()) return;
  for (const Json& name : *required) {
    if (!name.is_string() || c.value.contains(name.get_ref<const std::string&>())) continue;
    c.Push(RequiredValue((c.path.empty() ? "" : c.path + ".") + name.get_ref<const std::string&>()));
  }
}

size_t CountValid(const SchemaCheck& c, const Json& alternatives, FieldErrors* first) {
  size_t valid = 0;
  for (const Json& one : alternatives) {
    FieldErrors sub;
    ValidateSchema(c.value, c.schema.Sub(one), nullptr, c.path, &sub);
    valid += sub.empty();
    if (!sub.empty() && first->empty()) *first = std::move(sub);
  }
  return valid;
}

void CheckJunctors(const SchemaCheck& c) {
  FieldErrors first;
  if (const Json* all = c.Keyword("allOf"); all != nullptr && all->is_array()) {
    for (const Json& one : *all) ValidateSchema(c.value, c.schema.Sub(one), nullptr, c.path, c.errors);
  }
  if (const Json* any = c.Keyword("anyOf"); any != nullptr && any->is_array() && !any->empty()) {
    if (CountValid(c, *any, &first) == 0) {
      c.BadWhole("must validate at least one schema (anyOf)");
      for (FieldError& error : first) c.errors->push_back(std::move(error));
      first.clear();
    }
  }
  if (const Json* one = c.Keyword("oneOf"); one != nullptr && one->is_array() && !one->empty()) {
    const size_t valid = CountValid(c, *one, &first);
    if (valid != 1) {
      c.BadWhole(fmt::format(
          "must validate one and only one schema (oneOf). {}",
          valid == 0 ? std::string("Found none valid") : fmt::format("Found {} valid alternatives", valid)));
    }
    if (valid == 0) {
      for (FieldError& error : first) c.errors->push_back(std::move(error));
    }
  }
  if (const Json* no = c.Keyword("not"); no != nullptr && no->is_object()) {
    FieldErrors sub;
    ValidateSchema(c.value, c.schema.Sub(*no), nullptr, c.path, &sub);
    if (sub.empty()) c.BadWhole("must not validate the schema (not)");
  }
}

Json KeyOf(const Json& item, const std::vector<std::string>& keys) {
  Json picked = Json::object();
  for (const std::string& key : keys) {
    if (item.is_object() && item.contains(key)) picked[key] = item[key];
  }
  return picked;
}

void CheckUnique(const Json& list, const Schema& schema, const std::string& path, FieldErrors* errors) {
  const Schema::ListType type = schema.list_type();
  const bool unique = schema.Flag("uniqueItems") || type == Schema::ListType::kSet;
  if (!unique && type != Schema::ListType::kMap) return;
  std::map<std::string, int> seen;
  const std::vector<std::string> keys = schema.list_map_keys();
  for (size_t i = 0; i < list.size(); ++i) {
    const Json id = type == Schema::ListType::kMap ? KeyOf(list[i], keys) : list[i];
    if (++seen[Dump(id)] != 2 || errors->size() >= kMaxFieldErrors) continue;
    errors->push_back({"FieldValueDuplicate", fmt::format("{}[{}]", path, i), "Duplicate value: " + ShownValue(id)});
  }
}

}  // namespace

std::string JoinField(const std::string& path, std::string_view name) {
  if (path.empty()) return std::string(name);
  // Map keys with dots are put in brackets, as the real server does.
  if (name.find('.') != std::string_view::npos) return fmt::format("{}[{}]", path, name);
  return fmt::format("{}.{}", path, name);
}

void ValidateSchema(const Json& value, const Schema& schema, const Json* old, const std::string& path,
                    FieldErrors* errors) {
  if (!schema || errors->size() >= kMaxFieldErrors) return;
  const size_t before = errors->size();
  const SchemaCheck check{value, schema, old, path, errors};
  CheckType(check);
  if (!value.is_null()) CheckJunctors(check);
  if (value.is_string()) CheckString(check);
  if (value.is_number()) CheckNumber(check);
  if (value.is_array()) CheckArray(check);
  if (!value.is_null() || errors->size() > before) CheckEnum(check);
  if (value.is_object()) CheckObject(check);
  if (errors->size() > before && old != nullptr && *old == value) errors->resize(before);
}

void CheckListTypes(const Json& value, const Schema& schema, const std::string& path, FieldErrors* errors) {
  if (!schema || errors->size() >= kMaxFieldErrors) return;
  if (value.is_array()) {
    CheckUnique(value, schema, path, errors);
    const Schema items = schema.Items();
    for (size_t i = 0; items && i < value.size(); ++i) {
      CheckListTypes(value[i], items, fmt::format("{}[{}]", path, i), errors);
    }
  } else if (value.is_object()) {
    for (const auto& [name, field] : value.items()) {
      if (field.is_structured()) CheckListTypes(field, schema.Field(name), JoinField(path, name), errors);
    }
  }
}

KeyedItems::KeyedItems(const Json& list, std::vector<std::string> keys) : keys_(std::move(keys)) {
  if (!list.is_array()) return;
  for (const Json& item : list) items_.emplace(Dump(KeyOf(item, keys_)), &item);
}

const Json* KeyedItems::Find(const Json& item) const {
  const auto found = items_.find(Dump(KeyOf(item, keys_)));
  return found == items_.end() ? nullptr : found->second;
}

}  // namespace medley::kube
