#include "scheduler-service/hierarchy/hierarchy_planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/devices/shares.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/judge.h"

namespace medley::sched {
namespace {

constexpr size_t kMostDropped = 64;  // devices, of which single ones are tried to be left out
constexpr int kBucketDivisors[] = {2, 4, 8};

std::vector<DeviceProblem::Work> WorkOf(const DeviceProblem& problem, const std::vector<int>& devices) {
  std::vector<DeviceProblem::Work> work;
  for (const int d : devices) work.push_back(problem.WorkOf(0, problem.layers(), d));
  return work;
}

std::vector<int> AllDevices(const DeviceProblem& problem) {
  std::vector<int> all(static_cast<size_t>(problem.devices()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double SampleSeconds(const DeviceProblem& problem, int d) { return problem.WorkOf(0, problem.layers(), d).At(1); }

Formation FormationOf(model::Grouping grouping) {
  switch (grouping) {
    case model::Grouping::kNone:
    case model::Grouping::kAuto:
      return Formation::kBest;
    case model::Grouping::kPool:
      return Formation::kPools;
    case model::Grouping::kLinks:
      return Formation::kLinks;
  }
  return Formation::kBest;
}

std::string Name(const DeviceProblem& problem, const std::vector<int>& devices) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < devices.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + problem.device(devices[i]).id;
  }
  if (devices.size() > kShown) text += fmt::format(" and {} more", devices.size() - kShown);
  return text;
}

std::string AlgorithmName(model::AllreduceAlgorithm algorithm) {
  using enum model::AllreduceAlgorithm;
  switch (algorithm) {
    case kRecursiveDoubling:
      return "recursive doubling";
    case kCentralized:
      return "centralized";
    case kLinear:
      return "linear";
    case kAuto:
    case kRing:
      return "ring";
  }
  return "ring";
}

// A search for one problem.
class HierarchySearch {
 public:
  HierarchySearch(Judge& judge, Formation formation, uint64_t seed, const Budget& limits)
      : problem_(judge.question().devices()),
        judge_(judge),
        limits_(limits),
        before_(judge.judged()),
        bytes_(problem_.WeightBytes(0, problem_.layers())),
        formation_(formation),
        rng_(seed) {}

  absl::StatusOr<Candidate> Run() {
    Participation chosen = ChooseGroups(problem_, bytes_, formation_, rng_, &limits_);
    DropSingleDevices(chosen);
    MEDLEY_RETURN_IF_ERROR(Offer(chosen.arrangement));
    if (formation_ == Formation::kBest && chosen.arrangement.order.size() > kExactDevices && !limits_.Spent()) {
      MEDLEY_RETURN_IF_ERROR(Offer(Improved(problem_, chosen.arrangement, bytes_)));
    }
    const std::vector<int> all = AllDevices(problem_);
    // What a job without this planner would do is never better than the answer.
    if (formation_ == Formation::kBest) {
      MEDLEY_RETURN_IF_ERROR(Offer(OneRing(problem_, all, bytes_)));
      MEDLEY_RETURN_IF_ERROR(Offer(Arrange(problem_, all, bytes_, Formation::kBest, rng_)));
      const auto fastest = std::ranges::min_element(all, {}, [&](int d) { return SampleSeconds(problem_, d); });
      MEDLEY_RETURN_IF_ERROR(Offer(OneRing(problem_, {*fastest}, bytes_)));
    }
    if (best_) MEDLEY_RETURN_IF_ERROR(TryBuckets());
    if (!best_) {
      solution_.notes.push_back(fmt::format("the model fits on no set of devices: {}", base::Message(last_error_)));
      return std::move(solution_);
    }
    Compare(all);
    solution_.plan = std::move(best_);
    solution_.figures = figures_;
    solution_.model_seconds = ClosedFormSeconds(problem_, best_arrangement_);
    solution_.judged = judge_.judged() - before_;
    solution_.complete = !limits_.Spent();
    Explain(chosen);
    return std::move(solution_);
  }

 private:
  // Times an arrangement and keeps it if it is the best so far. Errors: Cancelled.
  absl::Status Offer(const Arrangement& arrangement) {
    model::ExecutionPlan plan = BuildDataParallel(problem_, WithShares(problem_, arrangement));
    const auto figures = judge_.Within(plan);
    if (absl::IsCancelled(figures.status())) return figures.status();
    if (!figures.ok()) {
      last_error_ = figures.status();
      return absl::OkStatus();
    }
    if (figures->seconds >= figures_.seconds) return absl::OkStatus();
    figures_ = *figures;
    best_ = std::move(plan);
    best_arrangement_ = arrangement;
    limits_.Report(*best_, figures_);
    return absl::OkStatus();
  }

  // Gradients that are reduced in parts, while the backward pass goes on.
  absl::Status TryBuckets() {
    for (const int parts : kBucketDivisors) {
      if (limits_.Spent()) break;
      model::ExecutionPlan plan = *best_;
      plan.schedule.bucket_bytes = std::max<int64_t>(1, static_cast<int64_t>(bytes_ / parts));
      const auto figures = judge_.Within(plan);
      if (absl::IsCancelled(figures.status())) return figures.status();
      if (!figures.ok() || figures->seconds >= figures_.seconds) continue;
      figures_ = *figures;
      best_ = std::move(plan);
      limits_.Report(*best_, figures_);
    }
    return absl::OkStatus();
  }

  // Leaves out single devices while that shortens the closed form: one with a slow link, for example.
  void DropSingleDevices(Participation& chosen) {
    while (formation_ == Formation::kBest && chosen.arrangement.order.size() > 1 &&
           chosen.arrangement.order.size() <= kMostDropped && !limits_.Spent()) {
      std::vector<int> devices = chosen.arrangement.order;
      std::ranges::sort(devices);
      Arrangement best;
      double least = chosen.seconds * (1 - 1e-9);
      for (size_t out = 0; out < devices.size() && !limits_.Spent(); ++out) {
        std::vector<int> rest = devices;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(out));
        if (LeastStepSeconds(problem_, rest, bytes_) >= least) continue;
        Arrangement arrangement = ArrangeBySearch(problem_, rest, bytes_);
        const double seconds = ClosedFormSeconds(problem_, arrangement);
        if (seconds >= least) continue;
        least = seconds;
        best = std::move(arrangement);
        dropped_ = true;
      }
      if (best.order.empty()) return;
      chosen.arrangement = std::move(best);
      chosen.seconds = least;
    }
  }

  void Compare(const std::vector<int>& all) {
    const auto add = [&](std::string label, const Arrangement& arrangement) {
      const auto seconds = judge_.SecondsWithin(BuildDataParallel(problem_, WithShares(problem_, arrangement)));
      solution_.alternatives.push_back(
          seconds.ok() ? Candidate::Alternative{std::move(label), *seconds, ""}
                       : Candidate::Alternative{std::move(label), 0, std::string(base::Message(seconds.status()))});
    };
    add("all devices, balanced shares, one ring", OneRing(problem_, all, bytes_));
    add("all devices, balanced shares, random groups", Arrange(problem_, all, bytes_, Formation::kRandom, rng_));
    add("all devices, balanced shares, groups of equal power",
        Arrange(problem_, all, bytes_, Formation::kEqualPower, rng_));
  }

  void Explain(const Participation& chosen) {
    std::vector<bool> used(static_cast<size_t>(problem_.devices()), false);
    for (const model::Device& device : solution_.plan->devices) {
      used[static_cast<size_t>(problem_.index().at(device.id))] = true;
    }
    std::string& text = solution_.explanation;
    for (const std::vector<int>& group : chosen.groups) {
      const auto taken = std::ranges::count_if(group, [&](int d) { return used[static_cast<size_t>(d)]; });
      const double seconds = SampleSeconds(problem_, group.front()) / problem_.samples();
      text += fmt::format("{} ({}, {} s a sample each): {}\n",
                          group.size() == 1 ? "1 device" : fmt::format("{} devices", group.size()),
                          Name(problem_, group), base::FormatDecimal(seconds, 9),
                          taken == 0                                 ? "left out, because a step with them takes longer"
                          : taken == static_cast<long>(group.size()) ? "take part"
                                                                     : fmt::format("{} of them take part", taken));
    }
    const model::Sync& sync = solution_.plan->placements.front().sync;
    for (const model::HierarchyLevel& level : sync.hierarchy) {
      size_t largest = 0;
      for (const auto& group : level.groups) largest = std::max(largest, group.size());
      text += fmt::format("{} groups of at most {} devices add by {}\n", level.groups.size(), largest,
                          AlgorithmName(level.algorithm));
    }
    if (solution_.plan->devices.size() > 1) {
      text += fmt::format("{} add by {}\n", sync.hierarchy.empty() ? "all devices" : "the leaders of the groups",
                          AlgorithmName(sync.algorithm));
      text += fmt::format("of a step, {} s are the allreduce of {} bytes\n",
                          base::FormatDecimal(best_arrangement_.seconds, 6), base::FormatDecimal(bytes_, 0));
    }
  }

  const DeviceProblem& problem_;
  Judge& judge_;
  const Budget& limits_;
  const int64_t before_;
  const double bytes_;
  const Formation formation_;
  base::Rng rng_;
  Candidate solution_;
  std::optional<model::ExecutionPlan> best_;
  Arrangement best_arrangement_;
  Figures figures_{.seconds = kForever};
  bool dropped_ = false;
  absl::Status last_error_;
};

class HierarchyPlanner final : public Planner {
 public:
  std::string_view name() const override { return "hierarchy"; }
  std::string_view description() const override {
    return "replicas of the whole model that add in groups of groups, and which devices are worth having (Wang 2023)";
  }
  Takes takes() const override { return {.supply = Supply::kDevices, .graphs = true, .asynchronous = false}; }
  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& limits) const override {
    return PlanReplicas(judge, FormationOf(question.request().planner.sync.hierarchy), seed, limits);
  }
};

}  // namespace

double ClosedFormSeconds(const DeviceProblem& problem, const Arrangement& arrangement) {
  return BalancedSamples(WorkOf(problem, arrangement.order), problem.samples()).seconds + arrangement.seconds;
}

double LeastStepSeconds(const DeviceProblem& problem, const std::vector<int>& devices, double bytes) {
  return std::max(BalancedShares(WorkOf(problem, devices)).seconds, LeastReductionSeconds(problem, devices, bytes));
}

Grouping GroupsToDecide(const DeviceProblem& problem, double bytes) {
  const std::vector<int> all = AllDevices(problem);
  const auto seconds = [&](int d) { return SampleSeconds(problem, d); };
  const auto cost = [&](int a, int b) {
    const auto message = [&](const model::LinkSpeed& link) {
      return link.latency_seconds + (link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
    };
    return std::max(message(problem.Link(a, b)), message(problem.Link(b, a)));
  };
  Grouping chosen = {all};
  for (const Grouping& groups : GroupsByLinks(all, cost)) {
    chosen = DividedByPower(groups, seconds);
    if (chosen.size() <= kMostDecided) break;
  }
  if (chosen.size() > kMostDecided) chosen = {all};
  std::ranges::stable_sort(chosen, std::greater{}, [&](const std::vector<int>& group) {
    double power = 0;
    for (const int d : group) power += 1 / std::max(seconds(d), 1e-12);
    return power;
  });
  return chosen;
}

Participation ChooseGroups(const DeviceProblem& problem, double bytes, Formation formation, base::Rng& rng,
                           const Budget* limits) {
  Participation best;
  best.groups = GroupsToDecide(problem, bytes);
  best.seconds = kForever;
  const size_t count = best.groups.size();
  for (size_t set = (size_t{1} << count) - 1; set > 0; --set) {  // all of them first
    if (limits != nullptr && limits->Spent() && !best.takes_part.empty()) break;
    std::vector<int> devices;
    for (size_t g = 0; g < count; ++g) {
      if ((set >> g & 1) != 0) devices.insert(devices.end(), best.groups[g].begin(), best.groups[g].end());
    }
    std::ranges::sort(devices);
    if (LeastStepSeconds(problem, devices, bytes) >= best.seconds) {
      ++best.pruned;
      continue;
    }
    Arrangement arrangement = Arrange(problem, devices, bytes, formation, rng);
    const double seconds = ClosedFormSeconds(problem, arrangement);
    if (seconds >= best.seconds) continue;
    best.seconds = seconds;
    best.arrangement = std::move(arrangement);
    best.takes_part.assign(count, false);
    for (size_t g = 0; g < count; ++g) best.takes_part[g] = (set >> g & 1) != 0;
  }
  return best;
}

absl::StatusOr<Candidate> PlanReplicas(Judge& judge, Formation formation, uint64_t seed, const Budget& limits) {
  const DeviceProblem& problem = judge.question().devices();
  if (problem.asynchronous()) {
    return base::InvalidArgument("planner {} makes no pipelines: set planner.schedule to SYNC_1F1B",
                                 problem.request().planner.name);
  }
  return HierarchySearch(judge, formation, seed, limits).Run();
}

std::unique_ptr<Planner> MakeHierarchyPlanner() { return std::make_unique<HierarchyPlanner>(); }

}  // namespace medley::sched
