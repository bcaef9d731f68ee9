// Kubernetes' metav1.Condition: the status of one aspect of an object, since when it holds, and why. Values; not
// synchronised.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/api/reasons.h"

namespace medley::ops {

enum class ConditionStatus { kTrue, kFalse, kUnknown };
std::string_view ToString(ConditionStatus status);

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;                // CamelCase, for programs; of the conditions that the operator sets: a Reason
  std::string message;               // a full sentence, for users
  std::string last_transition_time;  // RFC 3339; set when `status` changes
  int64_t observed_generation = 0;
  bool Has(Reason because) const { return reason == ToString(because); }
  bool operator==(const Condition&) const = default;
};

class Conditions {
 public:
  // Skips entries without a type; a field that is absent or of a wrong type gets its default.
  static Conditions FromJson(const kube::Json& list);
  kube::Json ToJson() const;

  // Adds or replaces the condition `type`. True when its status, reason or message changed; only a change of the
  // status sets the transition time to `now`.
  bool Set(std::string_view type, ConditionStatus status, Reason reason, std::string_view message,
           int64_t observed_generation, base::WallTime now);
  void Remove(std::string_view type);
  // Removes the conditions of all other types.
  void KeepOnly(std::span<const std::string_view> types);
  const Condition* Find(std::string_view type) const;  // null: absent
  bool IsTrue(std::string_view type) const;
  bool IsFalse(std::string_view type) const;
  const std::vector<Condition>& all() const { return conditions_; }
  bool operator==(const Conditions&) const = default;

 private:
  std::vector<Condition> conditions_;
};

}  // namespace medley::ops
