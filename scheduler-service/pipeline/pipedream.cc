// PipeDream's dynamic program over equal devices.
#include <algorithm>
#include <utility>

#include "scheduler-service/pipeline/baselines.h"

namespace medley::sched {
namespace {

class PipeDreamTable {
 public:
  explicit PipeDreamTable(const DeviceProblem& problem) : problem_(problem), devices_(problem.devices()) {
    bounds_ = {0};
    bounds_.insert(bounds_.end(), problem.cuts().begin(), problem.cuts().end());
    bounds_.push_back(problem.layers());
    double sum = 0;
    int links = 0;
    for (int a = 0; a < devices_; ++a) {
      for (int b = 0; b < devices_; ++b) {
        if (a == b || problem.Link(a, b).bytes_per_second <= 0) continue;
        sum += problem.Link(a, b).bytes_per_second;
        ++links;
      }
    }
    bandwidth_ = links > 0 ? sum / links : 0;
  }

  std::vector<PipelineStage> Run() {
    const size_t count = bounds_.size();
    best_.assign(count, std::vector<Entry>(static_cast<size_t>(devices_) + 1));
    for (size_t j = 1; j < count; ++j) {
      for (int m = 1; m <= devices_; ++m) {
        Entry& entry = best_[j][static_cast<size_t>(m)];
        entry = {StageSeconds(0, j, m), 0, m};
        for (size_t i = 1; i < j; ++i) {
          for (int last = 1; last < m; ++last) {
            const double seconds =
                std::max({best_[i][static_cast<size_t>(m - last)].seconds, Moves(i), StageSeconds(i, j, last)});
            if (seconds < entry.seconds) entry = {seconds, i, last};
          }
        }
      }
    }
    // PipeDream uses all devices.
    std::vector<PipelineStage> stages;
    int end_device = devices_;
    for (size_t j = count - 1; j > 0;) {
      const Entry& entry = best_[j][static_cast<size_t>(end_device)];
      PipelineStage stage{bounds_[entry.first], bounds_[j], {}};
      for (int d = end_device - entry.replicas; d < end_device; ++d) stage.devices.push_back(d);
      stages.push_back(std::move(stage));
      end_device -= entry.replicas;
      j = entry.first;
    }
    std::ranges::reverse(stages);
    return stages;
  }

 private:
  struct Entry {
    double seconds = kForever;
    size_t first = 0;  // boundary at which the last stage begins
    int replicas = 0;  // of the last stage
  };

  // T(i -> j, m): computation divides by the replicas, the weights go round a ring.
  double StageSeconds(size_t i, size_t j, int replicas) const {
    double compute = 0;
    for (int d = 0; d < devices_; ++d) compute += problem_.WorkOf(bounds_[i], bounds_[j], d).At(1) / devices_;
    const double weights = problem_.WeightBytes(bounds_[i], bounds_[j]);
    const double reduces = bandwidth_ > 0 ? 4.0 * (replicas - 1) / replicas * weights / bandwidth_ : 0;
    return std::max(compute, reduces) / replicas;
  }
  double Moves(size_t i) const { return bandwidth_ > 0 ? 2 * problem_.CutBytes(bounds_[i]) / bandwidth_ : 0; }

  const DeviceProblem& problem_;
  const int devices_;
  std::vector<int> bounds_;
  double bandwidth_ = 0;
  std::vector<std::vector<Entry>> best_;  // by boundary and devices
};

}  // namespace

std::vector<PipelineStage> PipeDream(const DeviceProblem& problem) { return PipeDreamTable(problem).Run(); }

}  // namespace medley::sched
