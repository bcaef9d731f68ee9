// The life of a TrainingJob as a pure function: (job, what is observed, own memory) -> actions, new memory.
//
//   admit -> objects -> profile -> plan -> run -> (restart | replan | evacuate) -> finish
//
// One pass brings the job as far as it can. Some steps of a pass need the answer of an action: whether the plan was
// saved, what the planner found. Decide therefore works by replay, as workflow engines do:
//
//   answers = []
//   loop: decision = Decide(job, world, memory, answers, options)
//         decision.next? carry it out, append its answer to `answers`, decide again
//         else           keep decision.memory, carry out decision.effects, requeue
//
// Each call runs the pass from its beginning, takes the answers in the order in which they were asked for, and stops at
// the first action without an answer. `world` and `memory` stay those of the beginning of the pass, so every call
// repeats the decisions of the call before: nothing is decided twice or differently. A pass takes one call and one
// more for each action.
//
// Pure: no client, cache, clock, randomness, log, thread. The same arguments give the same decision.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <optional>
#include <vector>

#include "operator/lifecycle/actions.h"
#include "operator/lifecycle/admission.h"
#include "operator/lifecycle/memory.h"
#include "operator/lifecycle/options.h"
#include "operator/lifecycle/world.h"

namespace medley::ops::lifecycle {

struct Decision {
  std::optional<Action> next;
  // Meaningful only without `next`:
  absl::Status status;  // an error: the pass is repeated after a growing delay, with the new memory
  Memory memory;
  std::vector<Effect> effects;
  std::optional<base::nanoseconds> requeue_after;
  std::shared_ptr<const Observation> observed;  // by which the pass was decided; null: none
};

Decision Decide(const JobInput& input, const World& world, const Memory& memory, const std::vector<Answer>& answers,
                const JobOptions& options);

}  // namespace medley::ops::lifecycle
