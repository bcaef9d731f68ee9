#include "localcluster/node/scheduler.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <map>

#include "common/base/status.h"
#include "kube/json_access.h"
#include "kube/pod.h"

namespace medley::localcluster {
namespace {

using Labels = std::map<std::string, std::string>;

bool ExpressionHolds(const kube::Json& expression, const Labels& labels) {
  const auto it = labels.find(kube::GetString(expression, "key"));
  const bool present = it != labels.end();
  const std::string op = kube::GetString(expression, "operator");
  const kube::Json& values = kube::GetArray(expression, "values");
  const auto listed = [&] {
    return std::any_of(values.begin(), values.end(), [&](const kube::Json& v) { return v == it->second; });
  };
  if (op == "In") return present && listed();
  if (op == "NotIn") return !present || !listed();
  if (op == "Exists") return present;
  if (op == "DoesNotExist") return !present;
  int64_t have = 0, bound = 0;
  if (!present || values.empty() || !values[0].is_string() || !absl::SimpleAtoi(it->second, &have) ||
      !absl::SimpleAtoi(values[0].get<std::string>(), &bound)) {
    return false;
  }
  return op == "Gt" ? have > bound : op == "Lt" && have < bound;
}

bool TermHolds(const kube::Json& term, const VirtualNode& node) {
  const kube::Json& expressions = kube::GetArray(term, "matchExpressions");
  const kube::Json& fields = kube::GetArray(term, "matchFields");
  if (expressions.empty() && fields.empty()) return false;  // an empty term selects nothing
  const Labels field_values = {{"metadata.name", node.name}};
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const kube::Json& e) { return ExpressionHolds(e, node.labels); }) &&
         std::all_of(fields.begin(), fields.end(),
                     [&](const kube::Json& e) { return ExpressionHolds(e, field_values); });
}

bool Selects(const kube::Object& pod, const VirtualNode& node) {
  for (const auto& [key, value] : kube::GetObject(pod.At("/spec"), "nodeSelector").items()) {
    const auto it = node.labels.find(key);
    if (it == node.labels.end() || value != it->second) return false;
  }
  const kube::Json& required = pod.At("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
  if (!required.is_object()) return true;
  const kube::Json& terms = kube::GetArray(required, "nodeSelectorTerms");
  return std::any_of(terms.begin(), terms.end(), [&](const kube::Json& t) { return TermHolds(t, node); });
}

// The names of the resources that the node lacks.
std::vector<std::string> Missing(const ResourceAmounts& requests, const NodeRoom& room) {
  std::vector<std::string> missing;
  for (const auto& [name, amount] : requests) {
    const auto it = room.free.find(name);
    const bool unlimited = it == room.free.end() && (name == "cpu" || name == "memory");
    const double free = it == room.free.end() ? 0 : it->second;
    if (!unlimited && amount > free * (1 + 1e-12) + 1e-9) missing.push_back(name);
  }
  return missing;
}

}  // namespace

absl::StatusOr<std::vector<NodeRoom>> RoomOf(const std::vector<VirtualNode>& nodes,
                                             const std::vector<kube::ObjectPtr>& pods) {
  std::vector<NodeRoom> rooms;
  for (const VirtualNode& node : nodes) {
    NodeRoom room{&node, {}, 0};
    const auto free = ParseAmounts(kube::Json(node.allocatable));
    if (!free.ok()) return base::Annotate(free.status(), fmt::format("node '{}'", node.name));
    room.free = *free;
    const auto besides = ParseAmounts(kube::Json(node.besides));
    if (!besides.ok()) return base::Annotate(besides.status(), fmt::format("node '{}'", node.name));
    for (const auto& [name, amount] : *besides) {
      if (const auto it = room.free.find(name); it != room.free.end()) it->second += amount;
    }
    for (const kube::ObjectPtr& pod : pods) {
      if (pod->String("/spec/nodeName") != node.name || kube::HasEnded(*pod)) continue;
      ++room.pods;
      const auto requests = PodRequests(*pod);
      if (!requests.ok()) continue;  // the API server accepted it; its requests cannot be counted
      for (const auto& [name, amount] : *requests) {
        if (const auto it = room.free.find(name); it != room.free.end()) it->second -= amount;
      }
    }
    rooms.push_back(std::move(room));
  }
  return rooms;
}

Placement PlacePod(const kube::Object& pod, const std::vector<NodeRoom>& rooms) {
  const auto requests = PodRequests(pod);
  if (!requests.ok()) return {std::nullopt, base::Message(requests.status())};
  const NodeRoom* best = nullptr;
  int unselected = 0;
  std::map<std::string, int> short_of;
  for (const NodeRoom& room : rooms) {
    if (!Selects(pod, *room.node)) {
      ++unselected;
      continue;
    }
    const std::vector<std::string> missing = Missing(*requests, room);
    for (const std::string& name : missing) ++short_of[name];
    if (missing.empty() && (best == nullptr || room.pods < best->pods)) best = &room;
  }
  if (best != nullptr) return {best->node->name, ""};
  std::string reasons;
  const auto add = [&](const std::string& text) { reasons += (reasons.empty() ? " " : ", ") + text; };
  if (unselected > 0) {
    add(fmt::format("{} node(s) didn't match Pod's node affinity/selector", unselected));
  }
  for (const auto& [name, count] : short_of) add(fmt::format("{} Insufficient {}", count, name));
  return {std::nullopt, fmt::format("0/{} nodes are available:{}.", rooms.size(), reasons)};
}

}  // namespace medley::localcluster
