#include "operator/capacity/node_facts.h"
#include "kube/json_access.h"

#include <algorithm>
#include <charconv>

namespace medley::ops {
namespace {

using kube::Json;

std::optional<int64_t> Integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool Compares(const std::string& op, const std::string* have, const Json& values) {
  if (have == nullptr || values.size() != 1 || !values[0].is_string()) return false;
  const auto left = Integer(*have);
  const auto right = Integer(values[0].get<std::string>());
  if (!left || !right) return false;
  return op == "Gt" ? *left > *right : *left < *right;
}

// `have` null: the node has no such label or field.
bool Holds(const Json& requirement, const std::string* have) {
  const std::string op = kube::GetString(requirement, "operator");
  const auto found = requirement.find("values");
  const Json values = found != requirement.end() && found->is_array() ? *found : Json(Json::array());
  const bool among = have != nullptr && std::find(values.begin(), values.end(), Json(*have)) != values.end();
  if (op == "In") return among;
  if (op == "NotIn") return !among;
  if (op == "Exists") return have != nullptr;
  if (op == "DoesNotExist") return have == nullptr;
  return (op == "Gt" || op == "Lt") && Compares(op, have, values);
}

bool MatchesTerm(const Json& term, const NodeFacts& node) {
  bool any = false;
  for (const char* list : {"matchExpressions", "matchFields"}) {
    const auto found = term.find(list);
    if (found == term.end() || !found->is_array()) continue;
    for (const Json& requirement : *found) {
      any = true;
      const std::string key = kube::GetString(requirement, "key");
      const std::string* have = nullptr;
      if (list == std::string_view("matchFields")) {
        have = key == "metadata.name" ? &node.name : nullptr;
      } else if (const auto label = node.labels.find(key); label != node.labels.end()) {
        have = &label->second;
      }
      if (!Holds(requirement, have)) return false;
    }
  }
  return any;
}

bool MatchesSelector(const Json& selector, const NodeFacts& node) {
  for (const auto& [key, value] : selector.items()) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || value != label->second) return false;
  }
  return true;
}

}  // namespace

NodeFacts FactsOf(const kube::Object& node) {
  NodeFacts facts;
  facts.name = node.key().name;
  const Json& labels = node.At("/metadata/labels");
  if (labels.is_object()) {
    for (const auto& [key, value] : labels.items()) {
      if (value.is_string()) facts.labels[key] = value.get<std::string>();
    }
  }
  facts.taints = TaintsOf(node);
  facts.allocatable = ReadAmounts(node.At("/status/allocatable"));
  for (const Json& condition : node.At("/status/conditions")) {
    if (kube::GetString(condition, "type") == "Ready" && kube::GetString(condition, "status") != "True") {
      facts.ready = false;
    }
  }
  facts.notice = NoticeOf(node);
  return facts;
}

bool Tolerates(const Json& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Json& toleration) {
    const std::string effect = kube::GetString(toleration, "effect");
    const std::string key = kube::GetString(toleration, "key");
    if (!effect.empty() && effect != taint.effect) return false;
    if (!key.empty() && key != taint.key) return false;
    const std::string op = kube::GetString(toleration, "operator");
    if (op == "Exists") return true;
    return !key.empty() && (op.empty() || op == "Equal") && kube::GetString(toleration, "value") == taint.value;
  });
}

bool MatchesTerms(const Json& terms, const NodeFacts& node) {
  if (!terms.is_array()) return true;
  return std::any_of(terms.begin(), terms.end(), [&](const Json& term) { return MatchesTerm(term, node); });
}

bool Allows(const NodeFacts& node, const PodDemand& demand) {
  if (!node.ready || node.notice) return false;
  if (!demand.node_name.empty() && demand.node_name != node.name) return false;
  for (const Taint& taint : node.taints) {
    const bool hard = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if (hard && !Tolerates(demand.tolerations, taint)) return false;
  }
  return MatchesSelector(demand.node_selector, node) && MatchesTerms(demand.node_terms, node);
}

void KeepOff(const std::vector<std::string>& nodes, kube::Object& pod) {
  if (nodes.empty()) return;
  Json& terms = pod.mutable_json()[Json::json_pointer(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms")];
  if (!terms.is_array() || terms.empty()) terms = Json::array({Json::object()});
  for (Json& term : terms) {
    for (const std::string& node : nodes) {  // matchFields allows only one value
      term["matchFields"].push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
    }
  }
}

int64_t FitsBeside(const NodeFacts& node, const Amounts& used, const Amounts& requests) {
  int64_t fits = kUnbounded;
  const auto bound = [&](const std::string& name, int64_t wanted) {
    if (wanted <= 0) return;
    const auto have = node.allocatable.find(name);
    if (have == node.allocatable.end()) {
      if (name != "cpu" && name != "memory" && name != "pods") fits = 0;
      return;
    }
    fits = std::min(fits, std::max<int64_t>(0, have->second - AmountOf(used, name)) / wanted);
  };
  for (const auto& [name, wanted] : requests) bound(name, wanted);
  bound("pods", 1);
  return fits;
}

}  // namespace medley::ops
