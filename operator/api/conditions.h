// metav1.Condition: what is so, since when, and why, in words that a person can act on. Values; not
// synchronised.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops {

enum class ConditionStatus { kTrue, kFalse, kUnknown };
std::string_view ToString(ConditionStatus status);

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;                // CamelCase, for programs
  std::string message;               // a sentence, for people
  std::string last_transition_time;  // RFC 3339; set when `status` changes
  int64_t observed_generation = 0;
  bool operator==(const Condition&) const = default;
};

class Conditions {
 public:
  // Unknown entries of the list are kept as far as they have a type.
  static Conditions FromJson(const kube::Json& list);
  kube::Json ToJson() const;

  // True when anything but the generation changed. The transition time moves only with the status.
  bool Set(std::string_view type, ConditionStatus status, std::string_view reason, std::string_view message,
           int64_t generation, base::WallTime now);
  void Remove(std::string_view type);
  const Condition* Find(std::string_view type) const;  // null: absent
  bool IsTrue(std::string_view type) const;
  bool IsFalse(std::string_view type) const;
  const std::vector<Condition>& all() const { return conditions_; }
  bool operator==(const Conditions&) const = default;

 private:
  std::vector<Condition> conditions_;
};

}  // namespace medley::ops
