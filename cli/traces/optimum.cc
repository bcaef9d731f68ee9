#include "cli/traces/optimum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/base/status.h"

namespace medley::cli::traces {
namespace {

constexpr float kImpossible = std::numeric_limits<float>::infinity();
constexpr double kMostStates = 4e8;

// A state is a tick, a mode and the work that is done. Modes: nothing runs and the checkpoint is in zone z (z), on
// demand in zone z (zones + z), spot in zone z (2 * zones + z), and nothing ran yet (3 * zones).
class Program {
 public:
  Program(const Trace& trace, const Egress& egress, const TraceJob& job)
      : trace_(trace), egress_(egress), job_(job), zones_(trace.zones.size()), modes_(3 * zones_ + 1) {
    const double tick = trace.tick_seconds / 3600;
    ticks_ =
        std::min(static_cast<size_t>(std::floor(job.deadline_hours / tick + 1e-9)), trace.ticks() - job.first_tick);
    work_ = static_cast<size_t>(std::ceil(job.work_hours / tick - 1e-9));
    start_ = std::max<size_t>(1, static_cast<size_t>(std::ceil(job.start_hours / tick - 1e-9)));
  }

  double states() const { return static_cast<double>((ticks_ + 1) * modes_ * (work_ + 1)); }

  // The mode of each tick. Empty: the job cannot be finished in time.
  std::vector<size_t> Solve() {
    const size_t layer = modes_ * (work_ + 1);
    from_.assign((ticks_ + 1) * layer, kNowhere);
    usd_.assign(start_ + 2, std::vector<float>(layer, kImpossible));
    At(0, 3 * zones_, 0) = 0;
    SumPrices();
    for (size_t t = 0; t < ticks_; ++t) {
      for (size_t k = 0; k <= work_; ++k) Leave(t, k);
      const std::vector<float>& reached = usd_[(t + 1) % usd_.size()];
      for (size_t m = 0; m < 3 * zones_; ++m) {
        const float usd = reached[m * (work_ + 1) + work_];
        if (usd < best_usd_) {
          best_usd_ = usd;
          best_tick_ = t + 1;
          best_mode_ = m;
        }
      }
      std::fill(usd_[t % usd_.size()].begin(), usd_[t % usd_.size()].end(), kImpossible);
    }
    return std::isfinite(best_usd_) ? ModesOfTicks() : std::vector<size_t>();
  }

 private:
  static constexpr uint8_t kNowhere = 255;
  static constexpr uint8_t kStays = 254;

  float& At(size_t t, size_t m, size_t k) { return usd_[t % usd_.size()][m * (work_ + 1) + k]; }
  uint8_t& From(size_t t, size_t m, size_t k) { return from_[(t * modes_ + m) * (work_ + 1) + k]; }
  double EgressUsd(size_t from, size_t to) const {
    return egress_.UsdPerGb(trace_.zones[from], trace_.zones[to]) * job_.checkpoint_gb;
  }

  // What a mode costs over the ticks from a to b, infinite where its spot units are not there all the time.
  void SumPrices() {
    const double tick = trace_.tick_seconds / 3600 * job_.units;
    sums_.assign(zones_, std::vector<double>(ticks_ + 1, 0));
    down_.assign(zones_, std::vector<int>(ticks_ + 1, 0));
    for (size_t z = 0; z < zones_; ++z) {
      for (size_t t = 0; t < ticks_; ++t) {
        const size_t at = job_.first_tick + t;
        sums_[z][t + 1] = sums_[z][t] + trace_.spot_usd[z][at] * tick;
        down_[z][t + 1] = down_[z][t] + (trace_.units[z][at] < job_.units ? 1 : 0);
      }
    }
  }
  double Cost(size_t m, size_t a, size_t b) const {
    if (m < zones_) return 0;
    if (m < 2 * zones_) {
      return trace_.on_demand_usd[m - zones_] * job_.units * trace_.tick_seconds / 3600 * static_cast<double>(b - a);
    }
    const size_t z = m - 2 * zones_;
    return down_[z][b] > down_[z][a] ? std::numeric_limits<double>::infinity() : sums_[z][b] - sums_[z][a];
  }

  void Reach(size_t t, size_t m, size_t k, double usd, uint8_t from) {
    float& least = At(t, m, k);
    if (!(usd < least)) return;
    least = static_cast<float>(usd);
    From(t, m, k) = from;
  }

  void Leave(size_t t, size_t k) {
    if (k + (ticks_ - t) < work_) return;  // cannot be finished any more
    for (size_t m = zones_; m < 3 * zones_; ++m) {
      const float usd = At(t, m, k);
      if (std::isfinite(usd)) Reach(t + 1, m, std::min(work_, k + 1), usd + Cost(m, t, t + 1), kStays);
    }
    for (size_t z = 0; z < zones_; ++z) {  // the cheapest way to have the checkpoint in zone z
      size_t best = z;
      for (const size_t m : {zones_ + z, 2 * zones_ + z}) {
        if (At(t, m, k) < At(t, best, k)) best = m;
      }
      if (std::isfinite(At(t, best, k))) Depart(t, k, best, z, true);
    }
    if (std::isfinite(At(t, 3 * zones_, k))) Depart(t, k, 3 * zones_, 0, false);
  }

  void Depart(size_t t, size_t k, size_t from, size_t zone, bool has_checkpoint) {
    const double usd = At(t, from, k);
    Reach(t + 1, has_checkpoint ? zone : from, k, usd, static_cast<uint8_t>(from));
    if (t + start_ > ticks_) return;
    for (size_t m = zones_; m < 3 * zones_; ++m) {
      if (m == from) continue;
      const double moved = has_checkpoint ? EgressUsd(zone, m % zones_) : 0;
      Reach(t + start_, m, k, usd + moved + Cost(m, t, t + start_), static_cast<uint8_t>(from));
    }
  }

  std::vector<size_t> ModesOfTicks() {
    std::vector<size_t> modes(ticks_, 3 * zones_);
    size_t t = best_tick_, m = best_mode_, k = work_;
    while (t > 0) {
      const uint8_t from = From(t, m, k);
      if (from == kStays) {
        --t;
        --k;
        modes[t] = m;
        continue;
      }
      const bool idle = m < zones_ || m == 3 * zones_;
      for (size_t i = 0; i < (idle ? 1 : start_); ++i) modes[--t] = m;
      m = from;
    }
    return modes;
  }

  const Trace& trace_;
  const Egress& egress_;
  const TraceJob& job_;
  const size_t zones_, modes_;
  size_t ticks_ = 0, work_ = 0, start_ = 0;
  std::vector<std::vector<float>> usd_;  // of the last ticks, by tick modulo their number
  std::vector<uint8_t> from_;
  std::vector<std::vector<double>> sums_;
  std::vector<std::vector<int>> down_;
  float best_usd_ = kImpossible;
  size_t best_tick_ = 0, best_mode_ = 0;
};

class PlannedPolicy final : public Policy {
 public:
  PlannedPolicy(std::vector<size_t> modes, size_t zones) : modes_(std::move(modes)), zones_(zones) {}
  Step Decide(const View& view) override {
    const size_t tick = view.tick - view.job->first_tick;
    const size_t mode = tick < modes_.size() ? modes_[tick] : 3 * zones_;
    const bool starts = tick == 0 || modes_[tick - 1] != mode;
    if (mode < zones_ || mode == 3 * zones_) return {.otherwise = Step::Else::kStop, .why = "waits"};
    const size_t zone = mode % zones_;
    if (mode < 2 * zones_) return {.otherwise = Step::Else::kOnDemand, .on_demand_zone = zone, .why = "on demand"};
    if (!starts && view.runs == Runs::kSpot && view.zone == zone) return {};
    return {.ask = {zone}, .why = "spot"};
  }

 private:
  const std::vector<size_t> modes_;
  const size_t zones_;
};

}  // namespace

absl::StatusOr<Outcome> SimulateOptimum(const Trace& trace, const Egress& egress, const TraceJob& job) {
  if (job.first_tick >= trace.ticks()) return base::InvalidArgument("the job starts after the end of the trace");
  Program program(trace, egress, job);
  if (program.states() > kMostStates || trace.zones.size() > 80) {
    return base::ResourceExhausted("the optimum of a job with {:.0f} states would take too long", program.states());
  }
  std::vector<size_t> modes = program.Solve();
  if (modes.empty()) return base::FailedPrecondition("nothing finishes the job in time");
  PlannedPolicy policy(std::move(modes), trace.zones.size());
  return Simulate(trace, egress, job, policy);
}

}  // namespace medley::cli::traces
