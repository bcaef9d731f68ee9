#include "cli/run/schema_words.h"

#include <fmt/core.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "cli/run/examples.h"
#include "common/base/closest.h"
#include "kube/schema/validate.h"

namespace medley::cli {
namespace {

using kube::JoinField;
using kube::Json;
using kube::Schema;

constexpr size_t kLongestText = 60;

// What people write for the units of durations, sizes and percentages; the longest first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 30> kUnits = {{
    {"milliseconds", "ms"},
    {"millisecond", "ms"},
    {"gigabytes", "G"},
    {"gigabyte", "G"},
    {"megabytes", "M"},
    {"megabyte", "M"},
    {"seconds", "s"},
    {"second", "s"},
    {"minutes", "m"},
    {"minute", "m"},
    {"percent", "%"},
    {"millis", "ms"},
    {"hours", "h"},
    {"hour", "h"},
    {"mins", "m"},
    {"secs", "s"},
    {"msec", "ms"},
    {"min", "m"},
    {"sec", "s"},
    {"hrs", "h"},
    {"kib", "Ki"},
    {"mib", "Mi"},
    {"gib", "Gi"},
    {"tib", "Ti"},
    {"kb", "k"},
    {"mb", "M"},
    {"gb", "G"},
    {"tb", "T"},
    {"hr", "h"},
    {"g", "G"},
}};

struct Violation {
  std::vector<std::string>* found;
  size_t most;
  void Add(const std::string& path, const std::string& what) const {
    if (found->size() < most) found->push_back(path + ": " + what);
  }
};

std::string Shown(const Json& value) {
  if (value.is_null()) return "empty";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "a group of fields";
  std::string text = value.is_string() ? value.get<std::string>() : kube::Dump(value);
  if (text.size() > kLongestText) text = text.substr(0, kLongestText - 3) + "...";
  return (value.is_string() ? "the text `" : "`") + text + "`";
}

bool IsWhole(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

std::string TypeWords(std::string_view type) {
  if (type == "object") return "a group of fields (a: 1, or {a: 1})";
  if (type == "array") return "a list ([a, b])";
  if (type == "string") return "a text";
  if (type == "boolean") return "true or false";
  if (type == "integer") return "a whole number";
  return "a number";
}

// "; write 5 without quotes".
std::string TypeAdvice(const Json& value, std::string_view type) {
  if ((type == "integer" || type == "number") && value.is_string()) {
    std::string text = value.get<std::string>();
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '_' || c == ' '; }), text.end());
    static const RE2 kGrouped("[0-9]{1,3}(,[0-9]{3})+(\\.[0-9]+)?");
    if (RE2::FullMatch(text, kGrouped)) text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    static const RE2 kNumber("[-+]?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?");
    const bool fits = RE2::FullMatch(text, kNumber) && (type == "number" || text.find_first_of(".eE") == text.npos);
    return fits ? "; write " + text + " without quotes" : "";
  }
  if (type == "string" && (value.is_number() || value.is_boolean())) return "; write \"" + kube::Dump(value) + "\"";
  if (type == "boolean" && value.is_string()) {
    std::string text = value.get<std::string>();
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const char* yes : {"yes", "on", "true", "y"}) {
      if (text == yes) return "; did you mean `true`?";
    }
    for (const char* no : {"no", "off", "false", "n"}) {
      if (text == no) return "; did you mean `false`?";
    }
  }
  if (type == "array" && !value.is_structured()) return "; write [" + kube::Dump(value) + "]";
  return "";
}

bool HasType(const Json& value, const Schema& schema) {
  if (schema.int_or_string()) return IsWhole(value) || value.is_string();
  if (schema.quantity()) return value.is_number() || value.is_string();
  const std::string_view want = schema.type();
  return want.empty() || (want == "object" && value.is_object()) || (want == "array" && value.is_array()) ||
         (want == "string" && value.is_string()) || (want == "boolean" && value.is_boolean()) ||
         (want == "number" && value.is_number()) || (want == "integer" && IsWhole(value));
}

std::string Plain(const Json& value) { return value.is_string() ? value.get<std::string>() : kube::Dump(value); }

// Returns false when the value is not among those that are allowed.
bool CheckOneOf(const Json& value, const Json& node, const std::string& path, const Violation& out) {
  const auto allowed = node.find("enum");
  if (allowed == node.end() || !allowed->is_array()) return true;
  std::vector<std::string> names;
  for (const Json& one : *allowed) {
    if (one == value) return true;
    names.push_back(Plain(one));
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  out.Add(path, fmt::format("`{}` is not one of {}{}", Plain(value), list, base::DidYouMean(Plain(value), names)));
  return false;
}

template <typename Value>
void CheckRange(const Json& node, const char* low, const char* high, Value size, const std::string& path,
                const std::string& of, const std::string& is, const Violation& out) {
  const auto bound = [&](const char* keyword) {
    const auto found = node.find(keyword);
    return found != node.end() && found->is_number() ? &*found : nullptr;
  };
  const auto exclusive = [&](const char* keyword) { return node.value(keyword, false); };
  const Json* least = bound(low);
  const Json* greatest = bound(high);
  if (least != nullptr) {
    const bool above = exclusive("exclusiveMinimum");
    const auto limit = least->get<double>();
    if (above ? size <= limit : size < limit) {
      out.Add(path, fmt::format("must {}{} {}, is {}", of, above ? "more than" : "at least", Plain(*least), is));
    }
  }
  if (greatest != nullptr) {
    const bool below = exclusive("exclusiveMaximum");
    const auto limit = greatest->get<double>();
    if (below ? size >= limit : size > limit) {
      out.Add(path, fmt::format("must {}{} {}, is {}", of, below ? "less than" : "at most", Plain(*greatest), is));
    }
  }
}

void CheckPattern(const std::string& text, const Json& node, const std::string& path, const Violation& out) {
  const auto pattern = node.find("pattern");
  if (pattern == node.end() || !pattern->is_string()) return;
  const auto& expression = pattern->get_ref<const std::string&>();
  const RE2 re(expression, RE2::Quiet);
  if (!re.ok() || RE2::PartialMatch(text, re)) return;
  const std::string example = ExampleOf(expression);
  const std::string meant = MeantByUnit(text, expression);
  out.Add(path, fmt::format("{} {}{}", Shown(Json(text)),
                            example.empty() ? "does not match " + expression : "must be written as in " + example,
                            meant.empty() ? "" : "; did you mean `" + meant + "`?"));
}

void Walk(const Json& value, const Schema& schema, const std::string& path, const Violation& out) {
  if (!schema || value.is_null() || out.found->size() >= out.most) return;
  if (!HasType(value, schema)) {
    const bool either = schema.int_or_string() || schema.quantity();
    out.Add(path, fmt::format("must be {}, is {}{}", either ? "a whole number or a text" : TypeWords(schema.type()),
                              Shown(value), either ? "" : TypeAdvice(value, schema.type())));
    return;
  }
  const Json& node = schema.json();
  if (!CheckOneOf(value, node, path, out)) return;
  if (value.is_number()) CheckRange(node, "minimum", "maximum", value.get<double>(), path, "be ", Plain(value), out);
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.empty() && node.value("minLength", 0) > 0) {
      out.Add(path, "must not be empty");
    } else {
      CheckPattern(text, node, path, out);
    }
  }
  if (value.is_array()) {
    const auto count = static_cast<double>(value.size());
    CheckRange(node, "minItems", "maxItems", count, path, "have ", std::to_string(value.size()), out);
    const Schema items = schema.Items();
    for (size_t i = 0; items && i < value.size(); ++i) Walk(value[i], items, fmt::format("{}[{}]", path, i), out);
  }
  if (!value.is_object()) return;
  for (const auto& [name, field] : value.items()) Walk(field, schema.Field(name), JoinField(path, name), out);
}

}  // namespace

std::string MeantByUnit(const std::string& text, const std::string& pattern) {
  const RE2 re(pattern, RE2::Quiet);
  if (!re.ok() || text.size() > kLongestText || RE2::PartialMatch(text, re)) return "";
  std::string compact;
  for (const char c : text) {
    if (c != ' ' && c != '_') compact += c == ',' ? '.' : c;
  }
  std::vector<std::string> tried = {compact};
  std::string lower = compact;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  tried.push_back(lower);
  for (const auto& [written, unit] : kUnits) {
    if (!lower.ends_with(written)) continue;
    tried.push_back(lower.substr(0, lower.size() - written.size()) + std::string(unit));
    break;
  }
  double days = 0;
  static const RE2 kDays("([0-9]+(?:\\.[0-9]+)?)d(?:ays?)?");
  if (RE2::FullMatch(lower, kDays, &days)) tried.push_back(fmt::format("{:g}h", days * 24));
  for (const char* unit : {"s", "%"}) tried.push_back(compact + unit);
  if (!compact.empty() && (compact[0] == '$' || compact.back() == '$')) {
    compact.erase(std::remove(compact.begin(), compact.end(), '$'), compact.end());
    tried.push_back(compact);
  }
  for (const std::string& one : tried) {
    if (one != text && RE2::PartialMatch(one, re)) return one;
  }
  return "";
}

std::vector<std::string> WrongValues(const Json& value, const Schema& schema, const std::string& path, size_t most) {
  std::vector<std::string> found;
  Walk(value, schema, path, {&found, most});
  return found;
}

}  // namespace medley::cli
