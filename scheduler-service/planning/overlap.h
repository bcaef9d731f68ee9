// Plans whose reductions go on during the next step's forward pass (Schedule::overlap_next_step). The losses are the
// same; a step is shorter where reductions take longer than the backward pass that hides them.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "common/model/execution_plan.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/planning/budget.h"
#include "scheduler-service/planning/judge.h"

namespace medley::sched {

// Sizes of buckets that are compared: all gradients at once, and the parameters in about 4, 16 and 64 parts.
std::vector<int64_t> BucketSizes(const DeviceProblem& problem);

// A plan must take at most this part of the seconds of one that updates at the end: a step that is open makes a switch
// and an evaluation wait, and is lost with a member.
inline constexpr double kWorthOverlap = 0.99;

struct OverlappedPlan {
  model::ExecutionPlan plan;
  Figures figures;
};

// Makes such plans. Not thread-safe.
class Overlapping {
 public:
  // Both must outlive it. The judge is of a question about devices.
  Overlapping(Judge& judge, const Budget& limits)
      : problem_(judge.question().devices()),
        judge_(judge),
        limits_(limits),
        before_(judge.judged()),
        simulator_(problem_, limits.stop()) {}

  // `plan` with reductions during the next step, in its own size of buckets or one of BucketSizes, whichever is
  // fastest, and reduced in the order of first use (simulate/reduction_order.h). A simulation and a judgement for each
  // size; none is begun when the limits are spent. nullopt: no such plan can run, or none that was tried takes at most
  // `below` seconds. Errors: Cancelled.
  absl::StatusOr<std::optional<OverlappedPlan>> NextStep(const model::ExecutionPlan& plan, double below);

  int64_t calls() const { return judge_.judged() - before_ + simulator_.calls(); }  // of both

 private:
  absl::StatusOr<std::optional<OverlappedPlan>> InOrderOfFirstUse(model::ExecutionPlan plan, double below);

  const DeviceProblem& problem_;
  Judge& judge_;
  const Budget& limits_;
  const int64_t before_;
  DeviceSimulator simulator_;
};

}  // namespace medley::sched
