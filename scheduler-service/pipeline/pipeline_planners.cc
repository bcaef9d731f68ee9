#include "scheduler-service/pipeline/pipeline_planners.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/pipeline/exact_pipeline.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::sched {
namespace {

class PipelinePlanner final : public Planner {
 public:
  PipelinePlanner(std::string_view name, std::string_view description, int most_devices, bool proves,
                  PipelineMethod search)
      : name_(name),
        description_(description),
        most_devices_(most_devices),
        proves_(proves),
        search_(std::move(search)) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  bool proves_optimality() const override { return proves_; }
  Takes takes() const override { return {.supply = Supply::kDevices, .graphs = true, .most_devices = most_devices_}; }
  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& limits) const override {
    const DeviceProblem& problem = question.devices();
    PipelineTimer timer(judge, limits);
    base::Rng rng(seed);
    Candidate own;
    MEDLEY_RETURN_IF_ERROR(search_({problem, limits, timer, rng}, own));
    Candidate best = timer.Best();
    best.lower_bound = own.lower_bound;
    best.notes.insert(best.notes.end(), own.notes.begin(), own.notes.end());
    return best;
  }

 private:
  const std::string_view name_, description_;
  const int most_devices_;  // 0: any
  const bool proves_;
  const PipelineMethod search_;
};

constexpr size_t kMostCuts = 256;

std::vector<PipelineStage> OneStageOn(const DeviceProblem& problem, std::vector<int> devices) {
  return {{0, problem.layers(), std::move(devices)}};
}

// A single stage computes its batch in one piece, which can be much faster than in micro-batches, and a search may not
// meet it.
void TimeSingleDevices(const DeviceProblem& problem, const Budget& limits, PipelineTimer& timer) {
  for (int d = 0; d < problem.devices() && !limits.Spent(); ++d) timer.Seconds(OneStageOn(problem, {d}));
}

absl::Status Exact(const PipelineQuestion& q, Candidate& out) {
  TimeSingleDevices(q.problem, q.limits, q.timer);  // first, so that there is a plan when the time ends
  for (const double steps_kept : {1.0, 2.0, 4.0, 8.0}) {
    MEDLEY_ASSIGN_OR_RETURN(const ExactPipeline exact, FindExactPipeline(q.problem, q.limits, steps_kept));
    if (steps_kept == 1) {
      out.lower_bound = exact.simulated_bound;  // plans are judged by the simulator
      if (exact.pieces_joined > 0) {
        out.notes.push_back(
            fmt::format("the model can be cut in {} places, of which {} were not tried: the bound holds "
                        "for the others",
                        q.problem.cuts().size(), exact.pieces_joined));
      }
    }
    if (exact.stages.empty()) break;
    // The closed form does not know everything that the simulator knows, so what the search met is timed too.
    constexpr size_t kTimed = 32;
    const size_t first = exact.found.size() > kTimed ? exact.found.size() - kTimed : 0;
    for (size_t i = exact.found.size(); i-- > first;) q.timer.Seconds(exact.found[i]);
    // The best one may keep the activations of more steps than fit.
    if (q.limits.Spent() || q.timer.Seconds(exact.stages) < kForever) break;
  }
  return absl::OkStatus();
}

std::vector<int> Everything(const DeviceProblem& problem) {
  std::vector<int> all;
  for (int d = 0; d < problem.devices(); ++d) all.push_back(d);
  return all;
}

}  // namespace

absl::Status CheckDivisions(const DeviceProblem& problem, std::string_view planner) {
  if (problem.devices() <= kMostDividedDevices && problem.cuts().size() <= kMostCuts) return absl::OkStatus();
  return base::InvalidArgument("planner {} is for at most {} devices and {} cuts of the model, not {} and {}", planner,
                               kMostDividedDevices, kMostCuts, problem.devices(), problem.cuts().size());
}

std::unique_ptr<Planner> MakePipelinePlanner(std::string_view name, std::string_view description, int most_devices,
                                             PipelineMethod search, bool proves) {
  return std::make_unique<PipelinePlanner>(name, description, most_devices, proves, std::move(search));
}

std::vector<std::unique_ptr<Planner>> MakePipelinePlanners() {
  std::vector<std::unique_ptr<Planner>> out;
  const auto add = [&](std::string_view name, std::string_view description, int most_devices, PipelineMethod search,
                       bool proves = false) {
    out.push_back(MakePipelinePlanner(name, description, most_devices, std::move(search), proves));
  };
  add("exact", "the best pipeline on at most 8 devices by a closed form, with a proof, and then by the simulator",
      kMostExactDevices, Exact, true);
  add("local", "local search from the best of PipeDream, Pipe-torch and one stage, with random restarts", 0,
      [](const PipelineQuestion& q, Candidate&) {
        if (CheckDivisions(q.problem, "local").ok()) {
          q.timer.Seconds(PipeDream(q.problem));
          q.timer.Seconds(PipeTorch(q.problem));
        }
        q.timer.Seconds(OneStageOn(q.problem, Everything(q.problem)));
        TimeSingleDevices(q.problem, q.limits, q.timer);
        const std::vector<PipelineStage> start =
            q.timer.best().empty() ? RandomPipeline(q.problem, q.rng) : std::vector<PipelineStage>(q.timer.best());
        SearchLocally(q.problem, start, kSearchCalls, q.rng, q.limits, q.timer);
        return absl::OkStatus();
      });
  add("pipedream", "PipeDream's dynamic program, for which all devices are equal (Harlap and others 2018)",
      kMostDividedDevices, [](const PipelineQuestion& q, Candidate&) {
        MEDLEY_RETURN_IF_ERROR(CheckDivisions(q.problem, "pipedream"));
        q.timer.Seconds(PipeDream(q.problem));
        return absl::OkStatus();
      });
  add("pipe-torch", "a stage for each device, in the order of their bandwidth (Zhan, Zhang 2019)", kMostDividedDevices,
      [](const PipelineQuestion& q, Candidate&) {
        MEDLEY_RETURN_IF_ERROR(CheckDivisions(q.problem, "pipe-torch"));
        q.timer.Seconds(PipeTorch(q.problem));
        return absl::OkStatus();
      });
  add("one-device", "the fastest single device", 0, [](const PipelineQuestion& q, Candidate&) {
    TimeSingleDevices(q.problem, q.limits, q.timer);
    return absl::OkStatus();
  });
  return out;
}

}  // namespace medley::sched
