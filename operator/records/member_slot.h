// A place of a plan and the pod that takes it; ConfigMap `JOB-plan` lists them. Immutable value.
#pragma once

#include <string>

#include "operator/api/names.h"

namespace medley::ops {

struct MemberSlot {
  std::string member;  // pod name
  Role role = Role::kTrainer;
  std::string pool;
  int stage = 0;  // trainers
  int index = 0;  // rank within the stage, or shard
  std::string zone = {};  // that the pod is pinned to; empty: any
  bool operator==(const MemberSlot&) const = default;
};

}  // namespace medley::ops
