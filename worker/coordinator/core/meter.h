// Throughput, loss, stage times and money of a job. Not thread-safe; owned by the core; time is told.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// Samples per second over a sliding window of trained (not necessarily surviving) samples.
class ThroughputMeter {
 public:
  explicit ThroughputMeter(base::nanoseconds window = base::seconds(5)) : window_(window) {}
  void Add(base::SteadyTime now, int64_t samples);
  // Starts anew, at `now`: after a switch the number tells of the new plan alone.
  void Reset(base::SteadyTime now);
  double Rate(base::SteadyTime now) const;

 private:
  struct Point {
    base::SteadyTime at;
    int64_t samples;  // in total
  };
  const base::nanoseconds window_;
  std::deque<Point> points_;
  int64_t total_ = 0;
};

// Exponential mean over about 20 observations.
class RecentMean {
 public:
  void Add(double value);
  void Reset() { count_ = 0; }
  double value() const { return value_; }
  bool empty() const { return count_ == 0; }

 private:
  double value_ = 0;
  int64_t count_ = 0;
};

// Compute and communication seconds per step of each stage, as reported by its trainers.
class StageMeter {
 public:
  void Reset() { stages_.clear(); }
  void Add(int stage, double compute_seconds, double comm_seconds);
  // Fills what was measured; `samples_per_step` turns compute seconds into a throughput.
  void Fill(const plan::v1::ExecutionPlan& plan, double samples_per_step, job::v1::Observation& out) const;

 private:
  struct Times {
    RecentMean compute, comm;
  };
  std::map<int, Times> stages_;
};

// USD spent: units held x price, integrated; and what the first plan would have cost for the same samples.
class CostMeter {
 public:
  void Restore(double usd, double usd_first, double first_throughput, int64_t paid_samples);
  // `units` by pool were held since the last call.
  void Hold(base::SteadyTime now, const std::map<std::string, int>& units);
  void SetPrices(const google::protobuf::Map<std::string, double>& usd_per_unit_hour);
  void SetFirstPlan(const plan::v1::ExecutionPlan& plan);
  // `samples` in total are committed. While the first plan is in force its throughput is measured.
  void Committed(base::SteadyTime now, int64_t samples, bool first_plan_in_force);
  // Training stands still: the time until the next commit says nothing about the first plan's throughput.
  void Pause() { measuring_ = false; }

  double usd() const { return usd_; }
  double usd_first() const { return usd_first_; }
  double first_throughput() const;  // measured; 0: not yet
  int64_t paid_samples() const { return paid_samples_; }

 private:
  double FirstPlanUsdPerSample() const;

  std::map<std::string, double> prices_;
  plan::v1::ExecutionPlan first_plan_;
  bool started_ = false;
  base::SteadyTime held_until_{};
  double usd_ = 0;
  double usd_first_ = 0;
  int64_t paid_samples_ = 0;
  double restored_throughput_ = 0;
  bool measuring_ = false;
  base::SteadyTime measured_at_{};
  double first_seconds_ = 0;
  int64_t first_samples_ = 0;
};

}  // namespace medley::worker
