#include "reproductions/tapp/baselines.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::reproductions::tapp {
namespace {

using sched::PipelineQuestion;

std::vector<sched::PipelineStage> OneStageOn(const sched::DeviceProblem& problem, std::vector<int> devices) {
  return {{0, problem.layers(), std::move(devices)}};
}

std::vector<int> Everything(const sched::DeviceProblem& problem) {
  std::vector<int> all(static_cast<size_t>(problem.devices()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// All subsets up to 10 devices; above, those with the fastest devices.
absl::Status BestSubset(const PipelineQuestion& q, sched::Candidate&) {
  const int devices = q.problem.devices();
  std::vector<int> by_speed;
  for (int d = 0; d < devices; ++d) by_speed.push_back(d);
  const auto seconds = [&](int d) { return q.problem.WorkOf(0, q.problem.layers(), d).At(1); };
  std::ranges::stable_sort(by_speed, {}, seconds);
  if (devices > 10) {
    for (auto end = by_speed.begin() + 1; end <= by_speed.end() && !q.limits.Spent(); ++end) {
      q.timer.Seconds(OneStageOn(q.problem, {by_speed.begin(), end}));
    }
    return absl::OkStatus();
  }
  for (unsigned set = 1; set < 1U << devices && !q.limits.Spent(); ++set) {
    std::vector<int> members;
    for (int d = 0; d < devices; ++d) {
      if ((set >> d & 1) != 0) members.push_back(d);
    }
    q.timer.Seconds(OneStageOn(q.problem, std::move(members)));
  }
  return absl::OkStatus();
}

}  // namespace

void SearchRandomly(const sched::DeviceProblem& problem, int64_t calls, base::Rng& rng, const sched::Budget& limits,
                    sched::PipelineTimer& timer) {
  const int64_t end = timer.calls() + calls;
  for (int64_t draw = 0; draw < 20 * calls && timer.calls() < end && !limits.Spent(); ++draw) {
    timer.Seconds(sched::RandomPipeline(problem, rng));
  }
}

std::vector<std::unique_ptr<sched::Planner>> MakeBaselines() {
  std::vector<std::unique_ptr<sched::Planner>> out;
  const auto add = [&](std::string_view name, std::string_view description, int most_devices,
                       sched::PipelineMethod search) {
    out.push_back(sched::MakePipelinePlanner(name, description, most_devices, std::move(search)));
  };
  add("random", "the best of random pipelines", 0, [](const PipelineQuestion& q, sched::Candidate&) {
    SearchRandomly(q.problem, sched::kSearchCalls, q.rng, q.limits, q.timer);
    return absl::OkStatus();
  });
  add("bsp", "one copy of the model on every device, shares balanced", 0,
      [](const PipelineQuestion& q, sched::Candidate&) {
        q.timer.Seconds(OneStageOn(q.problem, Everything(q.problem)));
        return absl::OkStatus();
      });
  add("bsp-subset", "one copy of the model on each device of the best subset", 0, BestSubset);
  return out;
}

}  // namespace medley::reproductions::tapp
