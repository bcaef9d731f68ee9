#include "operator/api/conditions.h"
#include "kube/json_access.h"

#include <algorithm>

namespace medley::ops {
namespace {

ConditionStatus ParseStatus(const std::string& text) {
  if (text == "True") return ConditionStatus::kTrue;
  if (text == "False") return ConditionStatus::kFalse;
  return ConditionStatus::kUnknown;
}

}  // namespace

std::string_view ToString(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kUnknown:
      break;
  }
  return "Unknown";
}

Conditions Conditions::FromJson(const kube::Json& list) {
  Conditions result;
  if (!list.is_array()) return result;
  for (const kube::Json& item : list) {
    if (!item.is_object() || kube::GetString(item, "type").empty()) continue;
    Condition condition{
        kube::GetString(item, "type"),    ParseStatus(kube::GetString(item, "status")), kube::GetString(item, "reason"),
        kube::GetString(item, "message"), kube::GetString(item, "lastTransitionTime"),  0};
    const auto observed = item.find("observedGeneration");
    if (observed != item.end() && observed->is_number_integer()) {
      condition.observed_generation = observed->get<int64_t>();
    }
    result.conditions_.push_back(std::move(condition));
  }
  return result;
}

kube::Json Conditions::ToJson() const {
  kube::Json list = kube::Json::array();
  for (const Condition& c : conditions_) {
    list.push_back({{"type", c.type},
                    {"status", ToString(c.status)},
                    {"reason", c.reason},
                    {"message", c.message},
                    {"lastTransitionTime", c.last_transition_time},
                    {"observedGeneration", c.observed_generation}});
  }
  return list;
}

bool Conditions::Set(std::string_view type, ConditionStatus status, Reason reason, std::string_view message,
                     int64_t observed_generation, base::WallTime now) {
  auto found = std::find_if(conditions_.begin(), conditions_.end(), [&](const Condition& c) { return c.type == type; });
  if (found == conditions_.end()) {
    conditions_.push_back({std::string(type), status, std::string(ToString(reason)), std::string(message),
                           base::FormatTime(now), observed_generation});
    return true;
  }
  const bool changed = found->status != status || !found->Has(reason) || found->message != message;
  if (found->status != status) found->last_transition_time = base::FormatTime(now);
  found->status = status;
  found->reason = ToString(reason);
  found->message = message;
  found->observed_generation = observed_generation;
  return changed;
}

void Conditions::Remove(std::string_view type) {
  std::erase_if(conditions_, [&](const Condition& c) { return c.type == type; });
}

void Conditions::KeepOnly(std::span<const std::string_view> types) {
  std::erase_if(conditions_,
                [&](const Condition& c) { return std::find(types.begin(), types.end(), c.type) == types.end(); });
}

const Condition* Conditions::Find(std::string_view type) const {
  for (const Condition& c : conditions_) {
    if (c.type == type) return &c;
  }
  return nullptr;
}

bool Conditions::IsTrue(std::string_view type) const {
  const Condition* found = Find(type);
  return found != nullptr && found->status == ConditionStatus::kTrue;
}

bool Conditions::IsFalse(std::string_view type) const {
  const Condition* found = Find(type);
  return found != nullptr && found->status == ConditionStatus::kFalse;
}

}  // namespace medley::ops
