// Measured and simulated seconds of a step of plans on two pools of unlike CPU quotas, for benches. Each pool's profile
// is measured by a profiler process under the pool's quota, as the operator does it. Then each plan trains with worker
// processes under their pools' quotas (cgroups), and is simulated from the profiles alone. Needs root and cgroups. Not
// thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/model/profile.h"
#include "tests/integration/worker/job_harness.h"

namespace CLI {
class App;
}

namespace medley::bench {

inline constexpr char kBig[] = "big";  // the pools
inline constexpr char kSmall[] = "small";
inline constexpr int kStepBatch = 512;
inline constexpr int kStepMicroBatches = 4;

struct StepTimeSettings {
  std::string models = "mlp,residual,ctrdnn";
  std::vector<std::string> plans;  // all unless given
  int rounds = 3;
  int seconds = 8;   // of each measurement
  double big = 0.7;  // cores of a unit
  double small = 0.35;
  int period_ms = 100;  // of the quota
};

struct NamedShape {
  std::string name;
  worker::JobShape shape;
};

// Prints where its layers are.
NamedShape Named(const std::string& name, const model::ExecutionPlan& plan);

// The question for two units of each pool to the planner: NAME, or NAME/async for the asynchronous schedule.
absl::StatusOr<model::PlanRequest> AskForTwoPools(const model::Profile& profile, const std::string& planner);

// The shapes to measure in a round, from the profile that was measured in it; the options are those of the model's job.
using ShapesOf = std::function<absl::StatusOr<std::vector<NamedShape>>(const model::Profile& profile,
                                                                       const worker::JobOptions& job)>;

void AddStepTimeOptions(CLI::App& app, StepTimeSettings& settings);

// Measures `settings.rounds` times and prints one line of JSON: seconds of a step, measured between two observations of
// the coordinator, and simulated, both as medians of the rounds; and the median and the largest error of all plans.
// Errors: those of `shapes_of` and of the processes; InvalidArgument where no plan has a name of `settings.plans`.
absl::Status MeasureStepTimes(const StepTimeSettings& settings, const ShapesOf& shapes_of);

}  // namespace medley::bench
