#include "localcluster/apiserver/transition.h"

#include <cctype>

#include "kube/json_access.h"
#include "localcluster/apiserver/validate.h"

namespace medley::kube::apiserver {
namespace {

constexpr int kDeepest = 32;  // parentheses

// Recursive descent, one function for each level of precedence. `failed_` ends it: the rule is not of the subset.
class Rule {
 public:
  Rule(std::string_view text, const Json& self, const Json& old_self) : rest_(text), self_(self), old_self_(old_self) {}

  std::optional<bool> Evaluate() {
    const Json value = Or();
    SkipSpaces();
    if (failed_ || !rest_.empty() || !value.is_boolean()) return std::nullopt;
    return value.get<bool>();
  }

 private:
  void SkipSpaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) rest_.remove_prefix(1);
  }
  bool Take(std::string_view token) {
    SkipSpaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  Json Fail() {
    failed_ = true;
    return nullptr;
  }
  // Both sides are read, so that a rule outside the subset is recognised whatever the values are.
  Json Or() {
    Json left = And();
    while (!failed_ && Take("||")) {
      const Json right = And();
      if (!left.is_boolean() || !right.is_boolean()) return Fail();
      left = left.get<bool>() || right.get<bool>();
    }
    return left;
  }
  Json And() {
    Json left = Equal();
    while (!failed_ && Take("&&")) {
      const Json right = Equal();
      if (!left.is_boolean() || !right.is_boolean()) return Fail();
      left = left.get<bool>() && right.get<bool>();
    }
    return left;
  }
  Json Equal() {
    Json left = Operand();
    if (!failed_ && Take("==")) return left == Operand();
    return left;
  }
  Json Operand() {
    if (failed_ || ++depth_ > kDeepest) return Fail();
    Json value = Inner();
    --depth_;
    return value;
  }
  Json Inner() {
    if (Take("!")) {
      const Json value = Operand();
      return value.is_boolean() ? Json(!value.get<bool>()) : Fail();
    }
    if (Take("(")) {
      Json value = Or();
      return Take(")") ? value : Fail();
    }
    if (Take("has(")) {
      const bool exists = Path() != nullptr;
      return Take(")") ? Json(exists) : Fail();
    }
    const Json* value = Path();
    return value == nullptr ? Json() : *value;
  }
  // Returns null when the field does not exist.
  const Json* Path() {
    const std::string root = Word();
    const Json* at = root == "self" ? &self_ : root == "oldSelf" ? &old_self_ : nullptr;
    if (at == nullptr) failed_ = true;
    while (!failed_ && rest_.starts_with(".")) {
      rest_.remove_prefix(1);
      const std::string field = Word();
      if (field.empty()) failed_ = true;
      at = at != nullptr && at->is_object() && at->contains(field) ? &at->at(field) : nullptr;
    }
    if (rest_.starts_with("(") || rest_.starts_with("[")) failed_ = true;  // a call or an index
    return failed_ ? nullptr : at;
  }
  std::string Word() {
    SkipSpaces();
    size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) != 0 || rest_[end] == '_'))
      ++end;
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  std::string_view rest_;
  const Json& self_;
  const Json& old_self_;
  bool failed_ = false;
  int depth_ = 0;
};

void CheckRules(const Json& old, const Json& value, const Json& rules, const std::string& path, FieldErrors* errors) {
  if (!rules.is_array()) return;
  for (const Json& entry : rules) {
    if (errors->size() >= kMaxFieldErrors || !entry.is_object()) continue;
    const std::string rule = GetString(entry, "rule");
    if (rule.find("oldSelf") == std::string::npos || Holds(rule, value, old).value_or(true)) continue;
    const std::string message = GetString(entry, "message");
    const std::string shown = value.is_object() ? "object" : value.is_array() ? "array" : value.dump();
    const std::string quoted = value.is_structured() ? "\"" + shown + "\"" : shown;
    errors->push_back({"FieldValueInvalid", path,
                       "Invalid value: " + quoted + ": " + (message.empty() ? "failed rule: " + rule : message)});
  }
}

}  // namespace

std::optional<bool> Holds(std::string_view rule, const Json& self, const Json& old_self) {
  return Rule(rule, self, old_self).Evaluate();
}

void CheckTransitions(const Json& old, const Json& value, const Schema& schema, const std::string& path,
                      FieldErrors* errors) {
  if (!schema || !schema.json().is_object()) return;
  const auto rules = schema.json().find("x-kubernetes-validations");
  if (rules != schema.json().end()) CheckRules(old, value, *rules, path, errors);
  if (!value.is_object() || !old.is_object()) return;
  for (const auto& [name, field] : value.items()) {
    const auto before = old.find(name);
    if (before != old.end()) CheckTransitions(*before, field, schema.Field(name), JoinField(path, name), errors);
  }
}

}  // namespace medley::kube::apiserver
