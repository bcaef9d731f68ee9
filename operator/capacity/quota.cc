#include "operator/capacity/quota.h"
#include "kube/json_access.h"

#include <algorithm>

namespace medley::ops {
namespace {

using kube::Json;

bool Matches(const Json& expression, const QuotaSubject& pod) {
  const std::string scope = kube::GetString(expression, "scopeName");
  if (scope == "Terminating") return pod.terminating;
  if (scope == "NotTerminating") return !pod.terminating;
  if (scope == "BestEffort") return pod.best_effort;
  if (scope == "NotBestEffort") return !pod.best_effort;
  // CrossNamespacePodAffinity: the pods of a job have no such terms.
  if (scope != "PriorityClass") return false;
  const std::string op = kube::GetString(expression, "operator");
  const bool has = !pod.priority_class.empty();
  if (op == "Exists") return has;
  if (op == "DoesNotExist") return !has;
  const auto values = expression.find("values");
  const bool among = has && values != expression.end() && values->is_array() &&
                     std::find(values->begin(), values->end(), Json(pod.priority_class)) != values->end();
  return op == "In" ? among : op == "NotIn" && !among;
}

struct Measure {
  enum class Of { kNothing, kPods, kRequests, kLimits } of = Of::kNothing;
  std::string resource;
  bool must_be_named = false;  // admission refuses pods that do not set it
};

Measure MeasureOf(std::string_view name) {
  using Of = Measure::Of;
  if (name == "pods" || name == "count/pods") return {Of::kPods, "", false};
  const bool core = name == "cpu" || name == "memory";
  if (core || name == "ephemeral-storage") return {Of::kRequests, std::string(name), core};
  for (const auto& [prefix, of] :
       {std::pair<std::string_view, Of>{"requests.", Of::kRequests}, {"limits.", Of::kLimits}}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view resource = name.substr(prefix.size());
    if (resource == "storage") return {};  // counts volume claims, not pods
    return {of, std::string(resource), resource == "cpu" || resource == "memory"};
  }
  if (name.substr(0, 10) == "hugepages-") return {Of::kRequests, std::string(name), false};
  return {};
}

}  // namespace

QuotaSubject SubjectOf(const PodDemand& demand) {
  return {demand.priority_class, demand.terminating, demand.best_effort};
}

QuotaFacts QuotaFactsOf(const kube::Object& quota) {
  QuotaFacts facts;
  facts.key = quota.key();
  const Json& hard = quota.At("/status/hard");
  facts.hard = ReadAmounts(hard.is_object() ? hard : quota.At("/spec/hard"));
  facts.used = ReadAmounts(quota.At("/status/used"));
  for (const Json& scope : quota.At("/spec/scopes")) {
    facts.scopes.push_back({{"scopeName", scope}, {"operator", "Exists"}});
  }
  for (const Json& expression : quota.At("/spec/scopeSelector/matchExpressions")) {
    facts.scopes.push_back(expression);
  }
  return facts;
}

bool CountsAgainst(const QuotaFacts& quota, const QuotaSubject& pod) {
  return std::all_of(quota.scopes.begin(), quota.scopes.end(),
                     [&](const Json& expression) { return Matches(expression, pod); });
}

int64_t QuotaUsage(std::string_view name, const PodAmounts& pod) {
  const Measure measure = MeasureOf(name);
  switch (measure.of) {
    case Measure::Of::kPods:
      return 1;
    case Measure::Of::kRequests:
      return AmountOf(pod.requests, measure.resource);
    case Measure::Of::kLimits:
      return AmountOf(pod.limits, measure.resource);
    case Measure::Of::kNothing:
      break;
  }
  return 0;
}

QuotaRoom RoomOf(const QuotaFacts& quota, const PodDemand& unit, const Amounts& own) {
  QuotaRoom room;
  if (!CountsAgainst(quota, {unit.priority_class, unit.terminating, unit.best_effort})) return room;
  for (const auto& [name, hard] : quota.hard) {
    const Measure measure = MeasureOf(name);
    if (measure.of == Measure::Of::kNothing) continue;
    const int64_t wanted = QuotaUsage(name, unit.amounts);
    const Amounts& named = measure.of == Measure::Of::kLimits ? unit.amounts.limits : unit.amounts.requests;
    int64_t units = room.units;
    std::string bound = "ResourceQuota " + quota.key.name + ": " + name;
    if (wanted > 0) {
      const int64_t used = std::max<int64_t>(0, AmountOf(quota.used, name) - AmountOf(own, name));
      units = std::max<int64_t>(0, hard - used) / wanted;
    } else if (measure.must_be_named && !named.contains(measure.resource)) {
      units = 0;
      bound += ", which the units of the pool do not set";
    }
    if (units < room.units) room = {units, std::move(bound)};
  }
  return room;
}

}  // namespace medley::ops
