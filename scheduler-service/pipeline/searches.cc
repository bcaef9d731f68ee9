// Random draws, and local search.
#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/closed_form.h"
#include "scheduler-service/pipeline/repair.h"

namespace medley::sched {
namespace {

constexpr int kMostSwapped = 48;
constexpr int kMostMoves = 100;         // of one descent without simulations
constexpr size_t kTimedNeighbours = 4;  // of the best by the closed form

template <typename T>
void Shuffle(base::Rng& rng, std::vector<T>& values) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.Below(i)]);
}

// All pipelines that differ from one in a single change.
class Neighbours {
 public:
  Neighbours(const DeviceProblem& problem, const std::vector<PipelineStage>& stages)
      : problem_(problem), stages_(stages) {}

  std::vector<std::vector<PipelineStage>> All() {
    MoveCuts();
    ChangeDevices();
    SwapDevices();
    DivideAndJoin();
    return std::move(out_);
  }

 private:
  void Add(std::vector<PipelineStage> changed) {
    for (PipelineStage& stage : changed) std::ranges::sort(stage.devices);
    out_.push_back(std::move(changed));
  }
  // The cuts next to `cut`, and some further away.
  std::vector<int> NearCuts(int cut) const {
    const std::vector<int>& cuts = problem_.cuts();
    const auto at = std::ranges::lower_bound(cuts, cut) - cuts.begin();
    std::vector<int> near;
    for (const std::ptrdiff_t step : {-4, -2, -1, 1, 2, 4}) {
      if (at + step >= 0 && at + step < std::ssize(cuts)) near.push_back(cuts[static_cast<size_t>(at + step)]);
    }
    return near;
  }
  void MoveCuts() {
    for (size_t s = 0; s + 1 < stages_.size(); ++s) {
      for (const int cut : NearCuts(stages_[s].end)) {
        if (cut <= stages_[s].first || cut >= stages_[s + 1].end) continue;
        std::vector<PipelineStage> changed = stages_;
        changed[s].end = changed[s + 1].first = cut;
        Add(std::move(changed));
      }
    }
  }
  void ChangeDevices() {
    for (int d = 0; d < problem_.devices(); ++d) {
      for (size_t to = 0; to <= stages_.size(); ++to) {  // the last: unused
        std::vector<PipelineStage> changed = stages_;
        for (PipelineStage& stage : changed) std::erase(stage.devices, d);
        if (to < stages_.size()) changed[to].devices.push_back(d);
        const bool empty = std::ranges::any_of(changed, [](const PipelineStage& one) { return one.devices.empty(); });
        if (!empty) Add(std::move(changed));
      }
    }
  }
  void SwapDevices() {
    if (problem_.devices() > kMostSwapped) return;  // their pairs are too many to compare
    for (int a = 0; a < problem_.devices(); ++a) {
      for (int b = a + 1; b < problem_.devices(); ++b) {
        std::vector<PipelineStage> changed = stages_;
        for (PipelineStage& stage : changed) {
          for (int& d : stage.devices) d = d == a ? b : d == b ? a : d;
        }
        Add(std::move(changed));
      }
    }
  }
  void DivideAndJoin() {
    for (size_t s = 0; s < stages_.size(); ++s) {
      const PipelineStage& stage = stages_[s];
      if (s + 1 < stages_.size()) {
        std::vector<PipelineStage> changed = stages_;
        changed[s].end = changed[s + 1].end;
        changed[s].devices.insert(changed[s].devices.end(), changed[s + 1].devices.begin(),
                                  changed[s + 1].devices.end());
        changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(s) + 1);
        Add(std::move(changed));
      }
      std::vector<int> inside;
      std::ranges::copy_if(problem_.cuts(), std::back_inserter(inside),
                           [&](int cut) { return cut > stage.first && cut < stage.end; });
      if (inside.empty() || stage.devices.size() < 2) continue;
      for (size_t part = 1; part < 4; ++part) {
        const int cut = inside[inside.size() * part / 4];
        for (const int d : stage.devices) {  // d alone takes the first part, or the second
          for (const bool front : {true, false}) {
            std::vector<PipelineStage> changed = stages_;
            std::vector<int> others = stage.devices;
            std::erase(others, d);
            const std::vector<int> one = {d};
            changed[s] = {stage.first, cut, front ? one : others};
            changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                           {cut, stage.end, front ? others : one});
            Add(std::move(changed));
          }
        }
      }
    }
  }

  const DeviceProblem& problem_;
  const std::vector<PipelineStage>& stages_;
  std::vector<std::vector<PipelineStage>> out_;
};

// Neighbours with their seconds by the closed form, the best first.
struct Judged {
  std::vector<std::vector<PipelineStage>> pipelines;
  std::vector<std::pair<double, size_t>> order;
  const std::vector<PipelineStage>& At(size_t rank) const { return pipelines[order[rank].second]; }
};
Judged JudgedNeighbours(const DeviceProblem& problem, const std::vector<PipelineStage>& stages) {
  Judged out{Neighbours(problem, stages).All(), {}};
  for (size_t i = 0; i < out.pipelines.size(); ++i) {
    out.order.emplace_back(SecondsOfPipeline(problem, out.pipelines[i]), i);
  }
  std::ranges::sort(out.order);
  return out;
}

// Goes to the best neighbour by the closed form until none is better: costs no simulation.
std::vector<PipelineStage> Descend(const DeviceProblem& problem, std::vector<PipelineStage> stages,
                                   const Budget& limits) {
  double seconds = SecondsOfPipeline(problem, stages);
  for (int moves = 0; moves < kMostMoves && !limits.Spent(); ++moves) {
    const Judged neighbours = JudgedNeighbours(problem, stages);
    if (neighbours.order.empty() || neighbours.order[0].first >= seconds * (1 - 1e-9)) break;
    seconds = neighbours.order[0].first;
    stages = neighbours.At(0);
  }
  return stages;
}

}  // namespace

std::vector<PipelineStage> RandomPipeline(const DeviceProblem& problem, base::Rng& rng) {
  const auto devices = static_cast<size_t>(problem.devices());
  const size_t most = std::min(devices, problem.cuts().size() + 1);
  const size_t groups = 1 + rng.Below(most);
  std::vector<int> cuts = problem.cuts();
  Shuffle(rng, cuts);
  cuts.resize(groups - 1);
  std::ranges::sort(cuts);
  std::vector<int> group_of_layer(static_cast<size_t>(problem.layers()));
  for (int l = 0; l < problem.layers(); ++l) {
    group_of_layer[static_cast<size_t>(l)] = static_cast<int>(std::ranges::upper_bound(cuts, l) - cuts.begin());
  }
  std::vector<int> order(devices);
  std::iota(order.begin(), order.end(), 0);
  Shuffle(rng, order);
  std::vector<std::vector<int>> devices_of_group(groups);
  for (size_t i = 0; i < devices; ++i) {
    const size_t group = i < groups ? i : rng.Below(groups + 1);  // the last: unused
    if (group < groups) devices_of_group[group].push_back(order[i]);
  }
  return RepairPipeline(problem, group_of_layer, devices_of_group).stages;
}

void SearchLocally(const DeviceProblem& problem, std::vector<PipelineStage> start, int64_t calls, base::Rng& rng,
                   const Budget& limits, PipelineTimer& timer) {
  const int64_t end = timer.calls() + calls;
  for (int64_t restart = 0; restart < calls && timer.calls() < end && !limits.Spent(); ++restart) {
    double seconds = timer.Seconds(start);
    for (bool better = true; better && timer.calls() < end && !limits.Spent();) {
      better = false;
      const Judged neighbours = JudgedNeighbours(problem, start);
      for (size_t k = 0; k < std::min(neighbours.order.size(), kTimedNeighbours * 4) && timer.calls() < end; ++k) {
        const double other = timer.Seconds(neighbours.At(k));
        if (other >= seconds * (1 - 1e-9)) continue;
        seconds = other;
        start = neighbours.At(k);
        better = true;
        if (k >= kTimedNeighbours) break;
      }
    }
    start = Descend(problem, RandomPipeline(problem, rng), limits);
  }
}

}  // namespace medley::sched
