// The planners of pipelines, by name, and how others are made.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/pipeline/timer.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

// What a planner is asked, and what it times its pipelines with.
struct PipelineQuestion {
  const DeviceProblem& problem;
  const Budget& limits;
  PipelineTimer& timer;
  base::Rng& rng;
};
// Times pipelines; may add a lower bound and notes to the candidate. Errors end the planning.
using PipelineMethod = std::function<absl::Status(const PipelineQuestion&, Candidate&)>;

// A planner whose plan is the best pipeline that `search` has timed. `name` and `description` must outlive it.
// `most_devices`: that `search` takes; 0: any.
std::unique_ptr<Planner> MakePipelinePlanner(std::string_view name, std::string_view description, int most_devices,
                                             PipelineMethod search, bool proves = false);

// exact, local, pipedream, pipe-torch, one-device.
std::vector<std::unique_ptr<Planner>> MakePipelinePlanners();

// What the dynamic programs that compare all divisions of the model take. Errors: InvalidArgument.
inline constexpr int kMostDividedDevices = 64;
absl::Status CheckDivisions(const DeviceProblem& problem, std::string_view planner);

// Simulations that the searching planners make at most, unless their time ends first.
inline constexpr int64_t kSearchCalls = 2000;

}  // namespace medley::sched
