#include "kube/schema/field_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/go_text.h"

namespace medley::kube {
namespace {

// As encoding/json does, which also escapes what HTML could misread.
void AppendText(const std::string& text, std::string& out) {
  out += '"';
  const std::string dumped = Dump(Json(text));
  for (size_t i = 1; i + 1 < dumped.size(); ++i) {
    const char c = dumped[i];
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendJson(const Json& value, std::string& out) {
  if (value.is_object()) {
    out += '{';
    for (auto it = value.begin(); it != value.end(); ++it) {
      if (it != value.begin()) out += ',';
      AppendText(it.key(), out);
      out += ':';
      AppendJson(*it, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ',';
      AppendJson(value[i], out);
    }
    out += ']';
  } else if (value.is_string()) {
    AppendText(value.get_ref<const std::string&>(), out);
  } else if (value.is_number_float()) {
    out += base::GoNumber(value.get<double>(), 21);
  } else {
    out += Dump(value);
  }
}

}  // namespace

std::string ShownValue(const Json& value) {
  if (value.is_string()) return base::GoQuote(value.get_ref<const std::string&>());
  if (value.is_number_float()) return base::GoNumber(value.get<double>());
  std::string text;
  AppendJson(value, text);
  return text;
}

FieldError InvalidValue(std::string_view field, const Json& value, std::string_view what) {
  return {"FieldValueInvalid", std::string(field), fmt::format("Invalid value: {}: {}", ShownValue(value), what)};
}

FieldError RequiredValue(std::string_view field, std::string_view what) {
  return {"FieldValueRequired", std::string(field),
          what.empty() ? "Required value" : fmt::format("Required value: {}", what)};
}

FieldError Forbidden(std::string_view field, std::string_view what) {
  return {"FieldValueForbidden", std::string(field), fmt::format("Forbidden: {}", what)};
}

bool StopsRules(const FieldErrors& errors) {
  static constexpr std::array<std::string_view, 5> kStopping = {"FieldValueNotSupported", "FieldValueRequired",
                                                                "FieldValueTooLong", "FieldValueTooMany",
                                                                "FieldValueTypeInvalid"};
  return std::ranges::any_of(
      errors, [](const FieldError& error) { return std::ranges::find(kStopping, error.reason) != kStopping.end(); });
}

FieldError RulesNotChecked() {
  return InvalidValue("<nil>", nullptr,
                      "some validation rules were not checked because the object was invalid; correct the existing "
                      "errors to complete validation");
}

}  // namespace medley::kube
