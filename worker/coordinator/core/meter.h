// Measures a job's throughput, loss, stage times and cost. Not thread-safe; owned by the core, which passes in the
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/activity.h"

namespace medley::worker {

// Samples trained per second over a sliding window. Counts samples whose steps are rolled back later.
class ThroughputMeter {
 public:
  explicit ThroughputMeter(base::nanoseconds window = base::seconds(5)) : window_(window) {}
  void Add(base::SteadyTime now, int64_t samples);
  // Forgets all samples. Called at a switch, so that the rate describes only the new plan.
  void Reset(base::SteadyTime now);
  double Rate(base::SteadyTime now) const;

 private:
  struct Point {
    base::SteadyTime at;
    int64_t samples;  // cumulative
  };
  const base::nanoseconds window_;
  std::deque<Point> points_;
  int64_t total_ = 0;
};

// Exponential moving mean over about 20 values.
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

// Compute and communication seconds per step of each stage, as reported by its trainers; or of each pool, where the
// plan has placements.
class StageMeter {
 public:
  void Reset() { stages_.clear(); }
  double data_wait_seconds() const { return data_wait_seconds_; }  // of all trainers, since the beginning
  // `slot`: of the trainer that reports. Its processor time counts only where it was measured.
  void Add(const job::v1::MemberSlot& slot, const job::v1::Progress& progress);
  // Mean seconds of a step in which trainers of a stage, or of a pool where the plan has placements, wait for others.
  // 0: not known.
  double CommSeconds(int stage, const std::string& pool) const;
  // Adds the measured times to `out`. `samples_per_step` converts compute seconds to a throughput.
  void Fill(const plan::v1::ExecutionPlan& plan, double samples_per_step, job::v1::Observation& out) const;

 private:
  struct Times {
    RecentMean compute, comm, processor;
  };
  using Part = std::pair<int, std::string>;  // stage and no pool, or 0 and pool
  void FillPart(const Part& part, double samples_per_step, job::v1::StageObservation& out) const;

  std::map<Part, Times> stages_;
  double data_wait_seconds_ = 0;
};

// Adds up what members say of the rows that they keep in memory and on disks.
class RowTierMeter {
 public:
  void Add(const std::string& member, const job::v1::RowTiers& tiers);
  // Forgets which rows members keep, but not what was counted. Called at a switch.
  void Reset() { kept_.clear(); }
  bool empty() const { return !any_; }
  // The sums.
  job::v1::RowTiers Sum() const;

 private:
  bool any_ = false;
  std::map<std::string, job::v1::RowTiers> kept_;  // only rows and bytes count
  job::v1::RowTiers counted_;                      // only counters
};

// Adds up what trainers say of embedding tables on their GPUs.
class DeviceTableMeter {
 public:
  void Add(const std::string& member, const job::v1::DeviceTables& tables);
  // Forgets where members have tables, but not what was counted. Called at a switch.
  void Reset() { places_.clear(); }
  bool empty() const { return !any_; }
  // The sums, with a place only while members report one, and the first reason why one is not that of the plan.
  job::v1::DeviceTables Sum() const;

 private:
  bool any_ = false;
  std::map<std::string, job::v1::DeviceTables> places_;
  job::v1::DeviceTables counted_;  // only counters
};

// Integrates the USD spent (units held x price), and what the first plan would have cost for the same samples.
class CostMeter {
 public:
  void Restore(double usd, double usd_first, double first_throughput, int64_t paid_samples);
  // Adds the cost since the last call, during which `units` (by pool) were held.
  void Hold(base::SteadyTime now, const std::map<std::string, int>& units);
  void SetPrices(const google::protobuf::Map<std::string, double>& usd_per_unit_hour);
  void SetFirstPlan(const plan::v1::ExecutionPlan& plan);
  // `samples` is the cumulative number of committed samples. Measures the first plan's throughput while it is in force.
  void Committed(base::SteadyTime now, int64_t samples, bool first_plan_in_force);
  // Training has stopped: the time until the next commit is not counted in the first plan's throughput.
  void Pause() { measuring_ = false; }

  double usd() const { return usd_; }
  double usd_first() const { return usd_first_; }
  double first_throughput() const;  // samples/s, measured; 0: not measured yet
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

// What the job measures of itself.
struct Meters {
  RecentMean loss;
  ThroughputMeter throughput;
  StageMeter stage_times;
  RowTierMeter row_tiers;
  DeviceTableMeter device_tables;
  CostMeter cost;
  ActivityMeter activity;
};

}  // namespace medley::worker
