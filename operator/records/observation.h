// What a job really does, as its coordinator tells it (medley.job.v1.Observation). Immutable value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace medley::ops {

enum class JobPhase {
  kUnknown,
  kWaiting,
  kTraining,
  kPreparing,
  kSwitching,
  kRecovering,
  kEvaluating,
  kComplete,
  kFailed,
  kSuspended
};

struct GenerationSwitch {
  int64_t from_generation = 0;
  int64_t to_generation = 0;
  std::string reason;  // the coordinator's sentence, or the plan's word
  std::string cause;   // one word: the plan's, or MemberLost, ExchangeBroken, ...
  double pause_seconds = 0;
  bool recovery = false;
  int64_t lost_steps = 0;
  std::string at;  // RFC 3339
  bool operator==(const GenerationSwitch&) const = default;
};

// Means of one step over the last seconds.
struct StageTimes {
  int units = 0;
  double compute_seconds = 0;  // 0: not measured yet
  double comm_seconds = 0;     // waiting for activations, gradients, rows, reduction
  double throughput = 0;       // samples/s that the computation alone would allow
  bool operator==(const StageTimes&) const = default;
};

struct Observation {
  JobPhase phase = JobPhase::kUnknown;
  int64_t generation = 0;       // in force
  int64_t next_generation = 0;  // being prepared; 0: none
  int64_t plan_generation = 0;  // of the accepted plan that the generation in force runs; 0: none yet
  int64_t step = 0;
  int64_t samples_done = 0;
  int64_t samples_total = 0;  // 0: not known yet
  double throughput = 0;      // samples/s
  double loss = 0;
  std::vector<StageTimes> stages;  // as the plan's
  std::map<std::string, double> metrics;
  double usd_spent = 0;
  double usd_first_plan = 0;
  std::vector<GenerationSwitch> switches;
  std::vector<std::string> missing_members;
  std::string message;
  int64_t restarts = 0;
  int64_t bad_rows = 0;
  int64_t last_checkpoint_step = 0;
  bool retryable = false;
  int64_t leader_term = 0;  // the newest that the coordinator has served
  bool operator==(const Observation&) const = default;
};

// Whether a job must be looked at because of `now`, or whether it is progress as expected: steps, losses, money, a
// throughput within a fifth of what it was. `before` null: nothing was known.
bool IsNews(const Observation* before, const Observation& now);

}  // namespace medley::ops
