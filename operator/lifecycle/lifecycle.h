// The life of a TrainingJob as a pure function: (job, what is observed, own memory) -> actions, new memory.
//
//   admit -> objects -> profile -> plan -> run -> (restart | replan | evacuate) -> finish
//
// One pass brings the job as far as it can. Some steps of a pass need the answer of an action: whether the plan was
// saved, what the planner found. Decide asks `respond` for it and goes on with the answer. The shell carries the action
// out; a test takes the answer from a table, or from a recorded pass.
//
// Pure but for `respond`: no client, cache, clock, randomness, log, thread. The same arguments and the same answers
// give the same actions in the same order, and the same decision.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "operator/lifecycle/actions.h"
#include "operator/lifecycle/admission.h"
#include "operator/lifecycle/effects.h"
#include "operator/lifecycle/memory.h"
#include "operator/lifecycle/options.h"
#include "operator/lifecycle/world.h"

namespace medley::ops::lifecycle {

// The answer of an action, of the type that the action names. nullopt: there is none; the pass ends before this action.
// Called by Decide in the thread of its caller; an action is handed over once.
using Respond = std::function<std::optional<Answer>(const Action&)>;

struct Decision {
  std::optional<Action> unanswered;  // the pass has ended before this action
  // Meaningful only without `unanswered`:
  absl::Status status;  // an error: the pass is repeated after a growing delay, with the new memory
  Memory memory;
  std::vector<Effect> effects;
  std::optional<base::nanoseconds> requeue_after;
  LinePlace line = LinePlace::kNone;
  std::optional<int64_t> turn;                  // in which the job was planned in vain; absent: that of the pass
  std::shared_ptr<const Observation> observed;  // by which the pass was decided; null: none
};

Decision Decide(const JobInput& input, const World& world, Memory memory, const Respond& respond,
                const JobOptions& options);

}  // namespace medley::ops::lifecycle
