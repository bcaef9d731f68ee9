#include "localcluster/apiserver/validate.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cmath>
#include <set>

#include "common/base/clock.h"

namespace medley::kube::apiserver {
namespace {

std::string Short(const Json& value) {
  std::string text = Dump(value);
  if (text.size() > 256) text = text.substr(0, 253) + "...";
  return text;
}

// One value that is being checked; keeps the signatures below short.
struct Check {
  const Json& value;
  const Schema& schema;
  const std::string& path;
  FieldErrors* errors;

  std::string In() const { return path + " in body"; }
  const Json* Keyword(const char* name) const {
    const auto it = schema.json().find(name);
    return it == schema.json().end() ? nullptr : &*it;
  }
  void Add(std::string reason, std::string what) const {
    if (errors->size() < kMaxFieldErrors) errors->push_back({std::move(reason), path, std::move(what)});
  }
  void Bad(const std::string& what) const {
    Add("FieldValueInvalid", fmt::format("Invalid value: {}: {}", Short(value), what));
  }
};

bool IsInteger(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

const char* TypeName(const Json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.type_name();
}

// Returns false if the type is wrong; then no other check makes sense.
bool CheckType(const Check& c) {
  if (c.value.is_null()) {
    if (c.schema.Flag("nullable") || c.schema.untyped()) return true;
  } else if (c.schema.int_or_string()) {
    if (IsInteger(c.value) || c.value.is_string()) return true;
  } else if (c.schema.quantity()) {
    if (c.value.is_number() || c.value.is_string()) return true;
  }
  const std::string_view want = c.schema.type();
  if (want.empty() && !c.schema.int_or_string()) return true;
  const bool ok = (want == "object" && c.value.is_object()) || (want == "array" && c.value.is_array()) ||
                  (want == "string" && c.value.is_string()) || (want == "boolean" && c.value.is_boolean()) ||
                  (want == "number" && c.value.is_number()) || (want == "integer" && IsInteger(c.value));
  if (ok) return true;
  const std::string name = c.schema.int_or_string() ? "integer,string" : std::string(want);
  c.Add("FieldValueTypeInvalid", fmt::format("Invalid value: \"{}\": {} must be of type {}: \"{}\"", TypeName(c.value),
                                             c.In(), name, TypeName(c.value)));
  return false;
}

void CheckEnum(const Check& c) {
  const Json* allowed = c.Keyword("enum");
  if (allowed == nullptr || !allowed->is_array()) return;
  std::string names;
  for (const Json& one : *allowed) {
    if (one == c.value) return;
    names += (names.empty() ? "" : ", ") + Dump(one);
  }
  c.Add("FieldValueNotSupported", fmt::format("Unsupported value: {}: supported values: {}", Short(c.value), names));
}

void CheckNumber(const Check& c) {
  const double x = c.value.get<double>();
  if (const Json* bound = c.Keyword("minimum"); bound != nullptr && bound->is_number()) {
    const bool exclusive = c.schema.Flag("exclusiveMinimum");
    if (exclusive ? x <= bound->get<double>() : x < bound->get<double>()) {
      c.Bad(fmt::format("{} should be greater than {}{}", c.In(), exclusive ? "" : "or equal to ", Dump(*bound)));
    }
  }
  if (const Json* bound = c.Keyword("maximum"); bound != nullptr && bound->is_number()) {
    const bool exclusive = c.schema.Flag("exclusiveMaximum");
    if (exclusive ? x >= bound->get<double>() : x > bound->get<double>()) {
      c.Bad(fmt::format("{} should be less than {}{}", c.In(), exclusive ? "" : "or equal to ", Dump(*bound)));
    }
  }
  if (const Json* step = c.Keyword("multipleOf"); step != nullptr && step->is_number() && step->get<double>() > 0) {
    const double ratio = x / step->get<double>();
    if (std::fabs(ratio - std::round(ratio)) > 1e-9) {
      c.Bad(fmt::format("{} should be a multiple of {}", c.In(), Dump(*step)));
    }
  }
}

// The limit in `keyword` if it is a valid count, else -1.
int64_t Count(const Check& c, const char* keyword) {
  const Json* bound = c.Keyword(keyword);
  return bound != nullptr && bound->is_number_integer() ? bound->get<int64_t>() : -1;
}

int64_t Runes(const std::string& text) {
  int64_t n = 0;
  for (const char ch : text) n += (static_cast<unsigned char>(ch) & 0xC0) != 0x80;
  return n;
}

void CheckString(const Check& c) {
  const std::string& text = c.value.get_ref<const std::string&>();
  const int64_t low = Count(c, "minLength");
  const int64_t high = Count(c, "maxLength");
  if (low >= 0 && Runes(text) < low) {
    c.Bad(fmt::format("{} should be at least {} chars long", c.In(), low));
  }
  if (high >= 0 && Runes(text) > high) {
    c.Add("FieldValueTooLong", fmt::format("Too long: may not be more than {} bytes", high));
  }
  if (const Json* pattern = c.Keyword("pattern"); pattern != nullptr && pattern->is_string()) {
    const RE2 re(pattern->get_ref<const std::string&>(), RE2::Quiet);
    if (re.ok() && !RE2::PartialMatch(text, re)) {
      c.Bad(fmt::format("{} should match '{}'", c.In(), pattern->get<std::string>()));
    }
  }
  if (const Json* format = c.Keyword("format"); format != nullptr && format->is_string()) {
    const auto& name = format->get_ref<const std::string&>();
    if (!HasFormat(name, text)) {
      c.Bad(fmt::format("{} must be of type {}: {}", c.In(), name, Short(c.value)));
    }
  }
}

void CheckUnique(const Check& c) {
  const Schema::ListType type = c.schema.list_type();
  const bool unique = c.schema.Flag("uniqueItems") || type == Schema::ListType::kSet;
  if (!unique && type != Schema::ListType::kMap) return;
  std::set<std::string> seen;
  const std::vector<std::string> keys = c.schema.list_map_keys();
  for (size_t i = 0; i < c.value.size(); ++i) {
    Json id = c.value[i];
    if (type == Schema::ListType::kMap) {
      if (!id.is_object()) continue;
      Json picked = Json::object();
      for (const std::string& key : keys) {
        if (id.contains(key)) picked[key] = id[key];
      }
      id = std::move(picked);
    }
    if (!seen.insert(Dump(id)).second && c.errors->size() < kMaxFieldErrors) {
      c.errors->push_back({"FieldValueDuplicate", fmt::format("{}[{}]", c.path, i), "Duplicate value: " + Short(id)});
    }
  }
}

// The real server reports the number of items, not the items.
void BadCount(const Check& c, int64_t size, const std::string& want) {
  if (c.errors->size() >= kMaxFieldErrors) return;
  c.errors->push_back(InvalidValue(c.path, size, fmt::format("{} should have {}", c.In(), want)));
}

void CheckArray(const Check& c) {
  const auto size = static_cast<int64_t>(c.value.size());
  const int64_t low = Count(c, "minItems");
  const int64_t high = Count(c, "maxItems");
  if (low >= 0 && size < low) BadCount(c, size, fmt::format("at least {} items", low));
  if (high >= 0 && size > high) {
    c.Add("FieldValueTooMany", fmt::format("Too many: {}: must have at most {} items", size, high));
  }
  CheckUnique(c);
  const Schema items = c.schema.Items();
  if (!items) return;
  for (size_t i = 0; i < c.value.size() && c.errors->size() < kMaxFieldErrors; ++i) {
    Validate(c.value[i], items, fmt::format("{}[{}]", c.path, i), c.errors);
  }
}

void CheckObject(const Check& c) {
  const auto size = static_cast<int64_t>(c.value.size());
  const int64_t low = Count(c, "minProperties");
  const int64_t high = Count(c, "maxProperties");
  if (low >= 0 && size < low) BadCount(c, size, fmt::format("at least {} properties", low));
  if (high >= 0 && size > high) BadCount(c, size, fmt::format("at most {} properties", high));
  if (const Json* required = c.Keyword("required"); required != nullptr && required->is_array()) {
    for (const Json& name : *required) {
      if (name.is_string() && !c.value.contains(name.get_ref<const std::string&>()) &&
          c.errors->size() < kMaxFieldErrors) {
        c.errors->push_back(RequiredValue(JoinField(c.path, name.get_ref<const std::string&>())));
      }
    }
  }
  for (const auto& [name, field] : c.value.items()) {
    if (c.errors->size() >= kMaxFieldErrors) return;
    const Schema schema = c.schema.Field(name);
    if (schema) Validate(field, schema, JoinField(c.path, name), c.errors);
  }
}

size_t CountValid(const Check& c, const Json& alternatives, FieldErrors* first) {
  size_t valid = 0;
  for (const Json& one : alternatives) {
    FieldErrors sub;
    Validate(c.value, c.schema.Sub(one), c.path, &sub);
    valid += sub.empty();
    if (!sub.empty() && first->empty()) *first = std::move(sub);
  }
  return valid;
}

void CheckJunctors(const Check& c) {
  FieldErrors first;
  if (const Json* all = c.Keyword("allOf"); all != nullptr && all->is_array()) {
    for (const Json& one : *all) Validate(c.value, c.schema.Sub(one), c.path, c.errors);
  }
  if (const Json* any = c.Keyword("anyOf"); any != nullptr && any->is_array() && !any->empty()) {
    if (CountValid(c, *any, &first) == 0) {
      c.Bad(fmt::format("{} must validate at least one schema (anyOf)", c.In()));
      for (FieldError& error : first) c.errors->push_back(std::move(error));
      first.clear();
    }
  }
  if (const Json* one = c.Keyword("oneOf"); one != nullptr && one->is_array() && !one->empty()) {
    const size_t valid = CountValid(c, *one, &first);
    if (valid != 1) {
      c.Bad(fmt::format(
          "{} must validate one and only one schema (oneOf). {}", c.In(),
          valid == 0 ? std::string("Found none valid") : fmt::format("Found {} valid alternatives", valid)));
    }
    if (valid == 0) {
      for (FieldError& error : first) c.errors->push_back(std::move(error));
    }
  }
  if (const Json* no = c.Keyword("not"); no != nullptr && no->is_object()) {
    FieldErrors sub;
    Validate(c.value, c.schema.Sub(*no), c.path, &sub);
    if (sub.empty()) c.Bad(fmt::format("{} must not validate the schema (not)", c.In()));
  }
}

}  // namespace

std::string JoinField(const std::string& path, std::string_view name) {
  if (path.empty()) return std::string(name);
  // Map keys with dots are put in brackets, as the real server does.
  if (name.find('.') != std::string_view::npos) return fmt::format("{}[{}]", path, name);
  return fmt::format("{}.{}", path, name);
}

void Validate(const Json& value, const Schema& schema, const std::string& path, FieldErrors* errors) {
  if (!schema || errors->size() >= kMaxFieldErrors) return;
  const Check check{value, schema, path, errors};
  if (!CheckType(check) || value.is_null()) return;
  CheckEnum(check);
  if (value.is_number()) CheckNumber(check);
  if (value.is_string()) CheckString(check);
  if (value.is_array()) CheckArray(check);
  if (value.is_object()) CheckObject(check);
  CheckJunctors(check);
}

bool HasFormat(std::string_view format, const std::string& text) {
  static constexpr char kOctet[] = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])";
  if (format == "date-time") return base::ParseTime(text).ok();
  if (format == "date") return RE2::FullMatch(text, "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])");
  if (format == "ipv4") return RE2::FullMatch(text, fmt::format("({0}\\.){{3}}{0}", kOctet));
  if (format == "ipv6") return RE2::FullMatch(text, "[0-9a-fA-F:]*:[0-9a-fA-F:.]*");
  if (format == "cidr") return RE2::FullMatch(text, "[0-9a-fA-F:.]+/[0-9]{1,3}");
  if (format == "uuid" || format == "uuid4") {
    return RE2::FullMatch(text, "(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}");
  }
  if (format == "byte") return RE2::FullMatch(text, "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?");
  if (format == "duration") {
    return RE2::FullMatch(text, "[-+]?([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d|w| )+)+|0");
  }
  if (format == "email") return RE2::FullMatch(text, "[^@\\s]+@[^@\\s]+");
  if (format == "hostname") return RE2::FullMatch(text, "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?");
  if (format == "uri") return RE2::FullMatch(text, "[A-Za-z][A-Za-z0-9+.-]*:[^\\s]*");
  return true;
}

}  // namespace medley::kube::apiserver
