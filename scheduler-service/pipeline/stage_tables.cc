#include "scheduler-service/pipeline/stage_tables.h"

#include <algorithm>

#include "scheduler-service/devices/shares.h"
#include "scheduler-service/pipeline/closed_form.h"

namespace medley::sched {
namespace {

// The boundaries of pieces, from 0 to layers().
std::vector<int> Boundaries(const DeviceProblem& problem, size_t& joined) {
  std::vector<int> out = {0};
  out.insert(out.end(), problem.cuts().begin(), problem.cuts().end());
  out.push_back(problem.layers());
  const auto work = [&](int first, int end) {
    double most = 0;
    for (int d = 0; d < problem.devices(); ++d) most = std::max(most, problem.WorkOf(first, end, d).At(1));
    return most;
  };
  // Joins the piece with the least work to the smaller of its neighbours.
  while (out.size() > kMostExactPieces + 1) {
    size_t smallest = 0;
    double least = kForever;
    for (size_t i = 0; i + 2 < out.size(); ++i) {
      const double both = work(out[i], out[i + 2]);
      if (both >= least) continue;
      least = both;
      smallest = i + 1;
    }
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(smallest));
    ++joined;
  }
  return out;
}

// Devices that can take each other's place: the same pool, and equal links to all others.
bool Alike(const DeviceProblem& problem, int a, int b) {
  if (problem.device(a).pool != problem.device(b).pool || problem.MemoryBytes(a) != problem.MemoryBytes(b))
    return false;
  const auto equal = [](const model::LinkSpeed& x, const model::LinkSpeed& y) {
    return x.latency_seconds == y.latency_seconds && x.bytes_per_second == y.bytes_per_second;
  };
  if (!equal(problem.Link(a, b), problem.Link(b, a))) return false;
  for (int d = 0; d < problem.devices(); ++d) {
    if (d == a || d == b) continue;
    if (!equal(problem.Link(a, d), problem.Link(b, d)) || !equal(problem.Link(d, a), problem.Link(d, b))) return false;
  }
  return true;
}

}  // namespace

StageTables::StageTables(const DeviceProblem& problem, const Budget& limits, double steps_kept)
    : problem_(problem), limits_(limits), bounds_(Boundaries(problem, joined_)) {
  devices_ = problem.devices();
  all_ = (Set{1} << devices_) - 1;
  pieces_ = static_cast<int>(bounds_.size()) - 1;
  FindOrders();
  FillTables(steps_kept);
}

bool StageTables::Stopped() {
  constexpr unsigned kLooks = 64;  // a look in so many calls, each of which is at most some dozens of microseconds
  if (!stopped_ && calls_++ % kLooks == 0) stopped_ = limits_.Spent();
  return stopped_;
}

std::vector<int> StageTables::Members(Set set) const {
  std::vector<int> members;
  for (int d = 0; d < devices_; ++d) {
    if ((set >> d & 1) != 0) members.push_back(d);
  }
  return members;
}

// Among devices that are alike, those with the lowest numbers are used first.
void StageTables::FindOrders() {
  std::vector<int> before(static_cast<size_t>(devices_), -1);  // the last one before it that is alike
  for (int d = 0; d < devices_; ++d) {
    for (int other = d - 1; other >= 0 && before[static_cast<size_t>(d)] < 0; --other) {
      if (Alike(problem_, d, other)) before[static_cast<size_t>(d)] = other;
    }
  }
  ordered_.assign(all_ + 1, true);
  for (Set set = 0; set <= all_; ++set) {
    for (int d = 0; d < devices_; ++d) {
      const int other = before[static_cast<size_t>(d)];
      if ((set >> d & 1) != 0 && other >= 0 && (set >> other & 1) == 0) ordered_[set] = false;
    }
  }
  // Numbers of pairs (used, first) with `first` within `used`.
  pair_.assign((all_ + 1) * (all_ + 1), -1);
  for (Set used = 1; used <= all_; ++used) {
    for (Set first = used; first > 0; first = (first - 1) & used) pair_[used * (all_ + 1) + first] = pairs_++;
  }
}

void StageTables::FillTables(double steps_kept) {
  const auto pieces = static_cast<size_t>(pieces_);
  compute_.assign(pieces * (pieces + 1) * (all_ + 1), kForever);
  least_.assign(compute_.size(), kForever);
  reduce_.assign(compute_.size(), 0);
  sends_.assign(compute_.size(), 0);
  for (int p = 0; p < pieces_; ++p) {
    for (int end = p + 1; end <= pieces_; ++end) {
      for (Set set = 1; set <= all_; ++set) {
        if (Stopped()) return;
        FillStage(p, end, set, steps_kept);
      }
    }
  }
  moves_.assign((pieces + 1) * static_cast<size_t>(all_ + 1) * (all_ + 1), 0);
  for (int p = 1; p < pieces_; ++p) {
    for (Set from = 1; from <= all_; ++from) {
      const Set rest = all_ & ~from;
      for (Set to = rest; to > 0; to = (to - 1) & rest) {
        if (Stopped()) return;
        moves_[MoveAt(p, from, to)] = TransferSeconds(problem_, Members(from), Members(to), Bound(p));
      }
    }
  }
  capacity_.assign((pieces + 1) * (all_ + 1), 0);
  for (int p = 1; p <= pieces_; ++p) {
    for (Set set = 1; set <= all_; ++set) {
      for (const int d : Members(set)) {
        capacity_[static_cast<size_t>(p) * (all_ + 1) + set] +=
            1 / std::max(problem_.WorkOf(0, Bound(p), d).variable, 1e-15);
      }
    }
  }
}

void StageTables::FillStage(int p, int end, Set set, double steps_kept) {
  const PipelineStage stage{Bound(p), Bound(end), Members(set)};
  if (!Fits(stage, steps_kept)) return;  // kForever
  const StageSeconds seconds = SecondsOfStage(problem_, stage);
  std::vector<DeviceProblem::Work> least;
  for (const int d : stage.devices) least.push_back(problem_.LeastWorkOf(stage.first, stage.end, d));
  compute_[At(p, end, set)] = seconds.computes;
  least_[At(p, end, set)] = BalancedShares(least).seconds;
  sends_[At(p, end, set)] = seconds.sends;
  reduce_[At(p, end, set)] = StageReductionSeconds(problem_, stage);
}

bool StageTables::Fits(const PipelineStage& stage, double steps_kept) const {
  std::vector<DeviceProblem::Work> work;
  for (const int d : stage.devices) work.push_back(problem_.WorkOf(stage.first, stage.end, d));
  const Shares shares = BalancedSamples(work, problem_.samples());
  const double state = problem_.request().training.state_factor * problem_.WeightBytes(stage.first, stage.end);
  for (size_t i = 0; i < stage.devices.size(); ++i) {
    const double limit = problem_.MemoryBytes(stage.devices[i]);
    const double kept = shares.shares[i] * problem_.ActivationBytes(stage.first, stage.end, stage.devices[i]);
    if (limit > 0 && shares.shares[i] > 0 && state + steps_kept * kept / problem_.micro_batches() > limit) return false;
  }
  return true;
}

}  // namespace medley::sched
