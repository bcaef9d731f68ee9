// Which samples are leased, applied and committed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/clock.h"
#include "worker/coordinator/core/agreements.h"
#include "worker/coordinator/core/ledger.h"

namespace medley::worker {

struct TrainingState {
  std::optional<Ledger> ledger;
  Agreements agreements;
  std::set<int64_t> agreed;      // leased steps after which replicas agree, not yet committed; empty unless they differ
  base::SteadyTime agreed_at{};  // when the last of them was leased
  int64_t applied = 0;           // the highest step that every member has applied, >= committed
  int64_t max_applied = 0;       // highest step that any member applied, for lost_steps
  int64_t drain = 0;             // the last step at which the members were asked to drain; or 0
  std::map<int64_t, std::pair<double, int64_t>> losses;  // by uncommitted step: (sum of losses, samples)
  base::SteadyTime committed_at{};  // time of the last commit or, before it, of the generation's start
};

}  // namespace medley::worker
