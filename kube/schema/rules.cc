#include "kube/schema/rules.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/cel/program.h"
#include "kube/json_access.h"
#include "kube/schema/rule_types.h"
#include "kube/schema/validate.h"

namespace medley::kube {
namespace {

constexpr size_t kLongestMessage = 5 * 1024;  // that an expression makes
constexpr const char* kRules = "x-kubernetes-validations";
constexpr size_t kSelf = 0;  // places of the variables
constexpr size_t kOldSelf = 1;

struct Rule {
  cel::Program program;
  std::optional<cel::Program> message_program;
  std::string text;     // of the expression
  std::string message;  // empty: none
  std::string reason;
  std::string field;  // below the value, as ".a" or "[b]"; empty: the value itself
  bool optional_old = false;

  bool about_old() const { return program.Uses(kOldSelf); }
  const std::string& Name() const { return message.empty() ? text : message; }
  std::string Message() const { return message.empty() ? "failed rule: " + text : message; }
};

std::string Trimmed(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())));
}

bool AnyRules(const Json& schema) {
  if (schema.is_array()) {
    for (const Json& each : schema) {
      if (AnyRules(each)) return true;
    }
  }
  if (!schema.is_object()) return false;
  for (const auto& [name, part] : schema.items()) {
    if (name == kRules || (part.is_structured() && AnyRules(part))) return true;
  }
  return false;
}

std::string Child(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

}  // namespace

struct Rules::Node {
  cel::TypePtr type;
  std::string type_name;  // that errors show instead of the value
  std::vector<Rule> rules;
  std::map<std::string, std::unique_ptr<const Node>> fields;
  std::unique_ptr<const Node> values, items;  // of a map, of a list
  std::vector<std::unique_ptr<const Node>> all_of;
  std::vector<std::string> keys;  // of a list of type map
  bool atomic = false;            // a map whose values are not compared one by one
};

class Rules::Compiler {
 public:
  // `type_schema`: what gives the types where `schema` is a part of allOf. Null: no rules.
  static absl::StatusOr<std::unique_ptr<const Node>> Compile(const Json& schema, const Json& type_schema, bool root,
                                                             const std::string& path) {
    if (!schema.is_object() || !AnyRules(schema)) return nullptr;
    auto node = std::make_unique<Node>();
    node->type = RuleType(type_schema, root);
    node->type_name = GetString(type_schema, "type");
    node->atomic = GetString(type_schema, "x-kubernetes-map-type") == "atomic";
    if (node->type != nullptr) node->keys = node->type->keys;
    if (const auto rules = schema.find(kRules); rules != schema.end() && rules->is_array()) {
      for (size_t i = 0; i < rules->size(); ++i) {
        const std::string at = fmt::format("{}.{}[{}]", path, kRules, i);
        MEDLEY_ASSIGN_OR_RETURN(Rule rule, One((*rules)[i], node->type, at));
        node->rules.push_back(std::move(rule));
      }
    }
    const auto part = [](const Json& of, const char* keyword) {
      const auto it = of.find(keyword);
      return it == of.end() ? nullptr : &*it;
    };
    if (const Json* properties = part(schema, "properties"); properties != nullptr && properties->is_object()) {
      const Json* types = part(type_schema, "properties");
      for (const auto& [name, field] : properties->items()) {
        if (types == nullptr || !types->contains(name)) continue;
        const bool embedded = field.is_object() && field.value("x-kubernetes-embedded-resource", false);
        MEDLEY_ASSIGN_OR_RETURN(auto child,
                                Compile(field, (*types)[name], embedded, fmt::format("{}.properties[{}]", path, name)));
        if (child != nullptr) node->fields[name] = std::move(child);
      }
    }
    for (const char* keyword : {"items", "additionalProperties"}) {
      const Json* below = part(schema, keyword);
      const Json* types = part(type_schema, keyword);
      if (below == nullptr || types == nullptr) continue;
      MEDLEY_ASSIGN_OR_RETURN(auto child, Compile(*below, *types, false, path + "." + keyword));
      (*keyword == 'i' ? node->items : node->values) = std::move(child);
    }
    if (const Json* all = part(schema, "allOf"); all != nullptr && all->is_array()) {
      for (size_t i = 0; i < all->size(); ++i) {
        MEDLEY_ASSIGN_OR_RETURN(auto each, Compile((*all)[i], type_schema, root, fmt::format("{}.allOf[{}]", path, i)));
        if (each != nullptr) node->all_of.push_back(std::move(each));
      }
    }
    return node;
  }

 private:
  static absl::StatusOr<Rule> One(const Json& json, const cel::TypePtr& type, const std::string& path) {
    if (!json.is_object()) return base::InvalidArgument("{}: must be an object", path);
    const std::string text = Trimmed(GetString(json, "rule"));
    const bool optional_old = json.value("optionalOldSelf", false);
    if (text.empty()) return base::InvalidArgument("{}.rule: Required value", path);
    if (type == nullptr) return base::InvalidArgument("{}: a value that may be anything can have no rules", path);
    const cel::TypePtr old =
        optional_old ? std::make_shared<const cel::Type>(cel::Type{.kind = cel::Kind::kOptional, .element = type})
                     : type;
    const std::vector<cel::Variable> variables = {{"self", type}, {"oldSelf", old}};
    auto program = cel::Program::Compile(text, variables, cel::Kind::kBool);
    if (!program.ok()) return base::Annotate(program.status(), fmt::format("{}.rule: '{}'", path, text));
    Rule rule{.program = *std::move(program),
              .text = text,
              .message = Trimmed(GetString(json, "message")),
              .reason = GetString(json, "reason"),
              .field = GetString(json, "fieldPath"),
              .optional_old = optional_old};
    if (const std::string expression = GetString(json, "messageExpression"); !expression.empty()) {
      auto message = cel::Program::Compile(expression, variables, cel::Kind::kString);
      if (!message.ok()) {
        return base::Annotate(message.status(), fmt::format("{}.messageExpression: '{}'", path, expression));
      }
      rule.message_program = *std::move(message);
    }
    return rule;
  }
};

// One object. Ends when the budget is spent.
class Rules::Checker {
 public:
  explicit Checker(FieldErrors* errors) : errors_(errors) {}

  // The nearest value around another that can be compared with what it was.
  struct Around {
    const Json* value = nullptr;
    const Json* old = nullptr;
  };

  // `old`: the value before the update; null where that is not known.
  void Check(const Node& node, const Json& value, const Json* old, Around around, const std::string& path) {
    if (ended_ || value.is_null()) return;
    if (old != nullptr && old->is_null()) old = nullptr;
    if (old != nullptr) around = {&value, old};
    for (const Rule& rule : node.rules) {
      if (!ended_) One(node, rule, value, old, around, path);
    }
    for (const auto& each : node.all_of) Check(*each, value, old, around, path);
    if (value.is_array() && node.items != nullptr) {
      std::optional<KeyedItems> before;
      if (old != nullptr && !node.keys.empty()) before.emplace(*old, node.keys);
      for (size_t i = 0; i < value.size() && !ended_; ++i) {
        const Json* same = before ? before->Find(value[i]) : nullptr;
        Check(*node.items, value[i], same, around, fmt::format("{}[{}]", path, i));
      }
    }
    if (!value.is_object()) return;
    const auto before = [&](const std::string& name) -> const Json* {
      if (old == nullptr || !old->is_object() || node.atomic) return nullptr;
      const auto it = old->find(name);
      return it == old->end() ? nullptr : &*it;
    };
    for (const auto& [name, child] : node.fields) {
      if (const auto it = value.find(name); it != value.end()) {
        Check(*child, *it, before(name), around, Child(path, name));
      }
    }
    if (node.values == nullptr) return;
    for (const auto& [name, field] : value.items()) {
      Check(*node.values, field, before(name), around, fmt::format("{}[{}]", path, name));
    }
  }

 private:
  static bool Same(const Around& around) { return around.old != nullptr && *around.old == *around.value; }

  void Add(std::string reason, const std::string& path, std::string what) {
    if (errors_->size() >= kMaxFieldErrors) ended_ = true;
    if (!ended_) errors_->push_back({std::move(reason), path.empty() ? "<nil>" : path, std::move(what)});
  }
  void Invalid(const Node& node, const std::string& path, const std::string& detail) {
    Add("FieldValueInvalid", path, fmt::format("Invalid value: \"{}\": {}", node.type_name, detail));
  }
  void End(const Node& node, const std::string& path, const std::string& detail) {
    Invalid(node, path, detail);
    ended_ = true;
  }

  // Takes what an evaluation has cost. False: the object may cost no more.
  bool Pay(const cel::Budget& call) {
    const uint64_t cost = cel::kCallBudget - call.left();
    const bool enough = cost <= left_;
    left_ -= enough ? cost : left_;
    return enough;
  }

  void One(const Node& node, const Rule& rule, const Json& value, const Json* old, const Around& around,
           const std::string& path) {
    static const std::string kSpent =
        "validation failed due to running out of cost budget, no further validation "
        "rules will be run";
    if (rule.about_old() && old == nullptr && !rule.optional_old) return;
    if (left_ == 0) return End(node, path, kSpent);
    std::vector<cel::Value> values(2);
    values[kSelf] = cel::Value::Read(value, node.type.get());
    if (rule.optional_old) {
      cel::Value::Optional optional;
      if (old != nullptr) optional.value = std::make_shared<const cel::Value>(cel::Value::Read(*old, node.type.get()));
      values[kOldSelf] = cel::Value(std::move(optional));
    } else if (old != nullptr) {
      values[kOldSelf] = cel::Value::Read(*old, node.type.get());
    }
    cel::Budget call(cel::kCallBudget);
    const cel::Value result = rule.program.Evaluate(values, call);
    if (!Pay(call)) return End(node, path, kSpent);
    if (result.is_error()) return Failed(node, rule, path, result.error());
    const auto* holds = result.As<bool>();
    if (holds != nullptr && *holds) return;
    if (!rule.about_old() && Same(around)) return;
    Broken(node, rule, values, path);
  }

  void Failed(const Node& node, const Rule& rule, const std::string& path, const cel::Value::Error& error) {
    const std::string& what = *error.message;
    if (error.fatal) {
      End(node, path,
          fmt::format("'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}", what,
                      rule.Name()));
    } else if (what.starts_with("no such overload")) {
      Invalid(node, path,
              fmt::format("'{}': call arguments did not match a supported operator, function or macro signature for "
                          "rule: {}",
                          what, rule.Name()));
    } else {
      Invalid(node, path, fmt::format("{} evaluating rule: {}", what, rule.Name()));
    }
  }

  void Broken(const Node& node, const Rule& rule, const std::vector<cel::Value>& values, const std::string& path) {
    std::string detail = rule.Message();
    if (rule.message_program) {
      cel::Budget call(cel::kCallBudget);
      const cel::Value made = rule.message_program->Evaluate(values, call);
      if (!Pay(call)) {
        return End(node, path,
                   "messageExpression evaluation failed due to running out of cost budget, no further validation "
                   "rules will be run");
      }
      const std::string text = Trimmed(std::string(made.text()));
      if (!text.empty() && text.size() <= kLongestMessage && text.find('\n') == std::string::npos) detail = text;
    }
    std::string at = path;
    if (!rule.field.empty())
      at = path.empty() ? rule.field.substr(rule.field.starts_with('.') ? 1 : 0) : path + rule.field;
    if (rule.reason == "FieldValueForbidden") return Add(rule.reason, at, "Forbidden: " + detail);
    if (rule.reason == "FieldValueRequired") return Add(rule.reason, at, "Required value: " + detail);
    if (rule.reason == "FieldValueDuplicate") {
      return Add(rule.reason, at, fmt::format("Duplicate value: \"{}\"", node.type_name));
    }
    Invalid(node, at, detail);
  }

  FieldErrors* errors_;
  uint64_t left_ = cel::kObjectBudget;
  bool ended_ = false;
};

Rules::Rules(std::unique_ptr<const Node> root) : root_(std::move(root)) {}
Rules::Rules(Rules&&) noexcept = default;
Rules& Rules::operator=(Rules&&) noexcept = default;
Rules::~Rules() = default;

absl::StatusOr<Rules> Rules::Compile(const Json& schema) {
  MEDLEY_ASSIGN_OR_RETURN(auto root, Compiler::Compile(schema, schema, true, "openAPIV3Schema"));
  return Rules(std::move(root));
}

void Rules::Check(const Json& object, const Json* old, FieldErrors* errors) const {
  if (root_ == nullptr) return;
  Checker(errors).Check(*root_, object, old, {}, "");
}

}  // namespace medley::kube
