#include "reproductions/heterog/baselines.h"

#include <functional>
#include <string_view>

#include "common/base/status.h"
#include "reproductions/heterog/hetpipe.h"
#include "reproductions/heterog/searches.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::reproductions::heterog {

using sched::OrderBy;
using sched::Replicas;

std::vector<std::unique_ptr<sched::Planner>> MakeBaselines(const sched::GraphOptions& options) {
  std::vector<std::unique_ptr<sched::Planner>> out;
  const auto add = [&](std::string_view name, std::string_view description,
                       const std::function<void(const sched::GraphQuestion&)>& search) {
    const auto run = [search](const sched::GraphQuestion& q) {
      search(q);
      return absl::OkStatus();
    };
    out.push_back(sched::MakeGraphPlanner(name, description, options, run, false));
  };
  add("graph-random", "the decisions of graph drawn at random, also around the best baseline",
      [](const sched::GraphQuestion& q) {
        TryBaselines(q);
        SearchRandomly(q);
      });
  add("graph-mcmc", "the decisions of graph by a Metropolis search, as FlexFlow's", [](const sched::GraphQuestion& q) {
    TryBaselines(q);
    SearchByMetropolis(q);
  });
  add("graph-post", "the decisions of graph by the cross-entropy method, as Post's", [](const sched::GraphQuestion& q) {
    TryBaselines(q);
    SearchByCrossEntropy(q);
  });
  const auto replicas = [&](std::string_view name, std::string_view description, Replicas how) {
    add(name, description, [how](const sched::GraphQuestion& q) {
      for (const int64_t bytes : BucketSizes(q.problem)) {
        q.timer.Seconds(Uniform(q, ActionOf(q.problem, how), bytes, OrderBy::kReady));
      }
    });
  };
  replicas("ev-ps", "equal replicas on all devices, gradients added by one of them", Replicas::kEvenServer);
  replicas("ev-ar", "equal replicas on all devices, allreduce", Replicas::kEvenAllreduce);
  replicas("cp-ps", "replicas by computing power, gradients added by one device", Replicas::kProportionalServer);
  replicas("cp-ar", "replicas by computing power, allreduce", Replicas::kProportionalAllreduce);
  add("horovod", "equal replicas on all devices, allreduce of 64 MiB at a time (Sergeev, Del Balso 2018)",
      [](const sched::GraphQuestion& q) {
        constexpr int64_t kFusionBytes = 64 << 20;
        q.timer.Seconds(Uniform(q, ActionOf(q.problem, Replicas::kEvenAllreduce), kFusionBytes, OrderBy::kReady));
      });
  out.push_back(sched::MakePipelinePlanner(
      "hetpipe", "pipelines of virtual workers with the same devices each (HetPipe, Park and others 2020)",
      sched::kMostDividedDevices, [](const sched::PipelineQuestion& q, sched::Candidate&) {
        MEDLEY_RETURN_IF_ERROR(CheckDivisions(q.problem, "hetpipe"));
        for (const auto& stages : HetPipe(q.problem, q.limits)) q.timer.Seconds(stages);
        return absl::OkStatus();
      }));
  return out;
}

}  // namespace medley::reproductions::heterog
