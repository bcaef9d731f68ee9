// A slot of a plan and the pod that fills it. ConfigMap `JOB-plan` lists all slots. Immutable value.
#pragma once

#include <string>

#include "operator/api/names.h"

namespace medley::ops {

struct MemberSlot {
  std::string member;  // pod name
  Role role = Role::kTrainer;
  std::string pool;
  int stage = 0;          // trainers only
  int index = 0;          // a trainer's rank within the stage, or a server's shard
  std::string zone = {};  // that the pod is pinned to; empty: any
  // Id of the plan's device, for a trainer of a plan with placements; its index is the device's number. Empty: stages.
  std::string device = {};
  bool operator==(const MemberSlot&) const = default;
};

}  // namespace medley::ops
