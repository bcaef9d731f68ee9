// What a coordinator reports about its job (medley.job.v1.Observation). Immutable value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/goodput/category.h"
#include "common/model/table_place.h"

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

// Causes of a switch that leaves out a slow trainer, and takes it back.
inline constexpr std::string_view kMemberSlow = "MemberSlow";
inline constexpr std::string_view kStandbyReturned = "StandbyReturned";

struct GenerationSwitch {
  int64_t from_generation = 0;
  int64_t to_generation = 0;
  std::string reason;  // the coordinator's sentence, or the plan's reason
  std::string cause;   // CamelCase: the plan's reason, or MemberLost, ExchangeBroken, ...
  double pause_seconds = 0;
  bool recovery = false;
  int64_t lost_steps = 0;
  std::string at;            // RFC 3339
  double start_seconds = 0;  // of the pause: from the start of a program to its first step
  bool operator==(const GenerationSwitch&) const = default;
};

// The mean times of one step, over the last seconds.
struct StageTimes {
  int units = 0;
  double compute_seconds = 0;    // 0: not measured yet
  double comm_seconds = 0;       // waiting for activations, gradients, rows, reduction
  double throughput = 0;         // samples/s that the stage would reach without communication
  double processor_seconds = 0;  // of all threads of a trainer; 0: not measured
  bool operator==(const StageTimes&) const = default;
};

// The best model so far, which is kept.
struct BestModel {
  int64_t step = 0;
  int epochs = 0;      // complete passes over the training data
  std::string metric;  // as in manifests
  double value = 0;
  bool validation = false;  // of the validation data; false: of the test data
  bool operator==(const BestModel&) const = default;
};

// The step of the finished model.
struct ExportedModel {
  int64_t step = 0;
  int epochs = 0;
  bool best = false;  // false: the last
  bool operator==(const ExportedModel&) const = default;
};

// The result of one evaluation.
struct Evaluation {
  int64_t step = 0;
  int epochs = 0;              // complete passes over the training data
  std::optional<double> loss;  // mean training loss since the evaluation before
  std::map<std::string, double> metrics;
  std::string at;  // RFC 3339
  bool operator==(const Evaluation&) const = default;
};

// The last plan that was sent, when one of its members can never run it: the job keeps the plan in force.
struct RefusedPlan {
  int64_t generation = 0;
  std::string member;
  std::string message;
  bool operator==(const RefusedPlan&) const = default;
};

// Checkpoints, the model or the journal cannot be written.
struct CheckpointFailure {
  std::string since;  // RFC 3339
  std::string message;
  bool paused = false;  // no step is trained meanwhile
  bool operator==(const CheckpointFailure&) const = default;
};

// For replicas that differ: the part of the steps after which they average their parameters, in force, and the time of
// synchronisation over that of computation in the last steps (0: not measured yet).
struct Agreement {
  double fraction = 1;
  double ratio = 0;
  bool operator==(const Agreement&) const = default;
};

// Where rows of embedding tables are that may not all be in memory. Counters since the coordinator began.
struct EmbeddingRows {
  int64_t in_memory = 0;
  int64_t on_disk = 0;  // that are not in memory
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  int64_t pulled = 0;        // that pulls have found
  int64_t loaded = 0;        // from the disk
  int64_t loaded_ahead = 0;  // of these, before a pull needed them
  int64_t left = 0;          // memory
  double wait_seconds = 0;   // of pulls and updates for the disk
  bool operator==(const EmbeddingRows&) const = default;
};

// Embedding tables of trainers that compute on GPUs. Counters since the coordinator began.
struct DeviceTables {
  model::TablePlace place = model::TablePlace::kUnspecified;
  int64_t used = 0;   // distinct rows that steps asked for
  int64_t found = 0;  // of these, those that were in the GPU's memory
  int64_t bytes_in = 0, bytes_out = 0;
  std::string instead;  // why the place is not that of the plan, as a sentence; empty: it is
  bool operator==(const DeviceTables&) const = default;
};

// A trainer that stands by, because it was much slower than usual.
struct LeftOut {
  std::string member;
  std::string since;  // RFC 3339
  bool operator==(const LeftOut&) const = default;
};

struct Observation {
  JobPhase phase = JobPhase::kUnknown;
  int64_t generation = 0;       // in force
  int64_t next_generation = 0;  // being prepared; 0: none
  int64_t plan_generation = 0;  // generation number of the plan that the generation in force runs; 0: none yet
  int64_t step = 0;
  int64_t samples_done = 0;
  int64_t samples_total = 0;  // 0: not known yet
  int epoch = 0;              // the pass over the data that is trained, from 1; 0: not known yet
  int epochs = 0;
  double throughput = 0;  // samples/s
  double loss = 0;
  std::vector<StageTimes> stages;  // in the order of the plan's stages
  std::map<std::string, double> metrics;
  std::vector<Evaluation> evaluations;  // the last 32, in the order of their steps
  goodput::Account units;               // id empty: no generation was in force yet
  double usd_spent = 0;
  double usd_first_plan = 0;
  std::vector<GenerationSwitch> switches;
  std::vector<std::string> missing_members;
  std::string message;
  int64_t restarts = 0;
  int64_t bad_rows = 0;
  int64_t last_checkpoint_step = 0;
  bool retryable = false;
  bool stopped_early = false;  // complete before the last epoch; `message` says why
  int64_t leader_term = 0;     // the newest that the coordinator has seen
  std::optional<RefusedPlan> refused;
  std::optional<CheckpointFailure> checkpoint_failure;
  std::vector<LeftOut> left_out;
  std::optional<BestModel> best;
  std::optional<ExportedModel> exported;
  std::optional<Agreement> agreement;           // only while replicas differ
  std::optional<EmbeddingRows> embedding_rows;  // absent: all are in memory
  std::optional<DeviceTables> device_tables;    // absent: no trainer with tables computes on a GPU
  bool operator==(const Observation&) const = default;
};

// True when the job needs a reconciliation because of `now`. False when `now` differs from `before` only by normal
// progress: steps, losses, money, and a throughput within a fifth of the earlier one. `before` null: true.
bool IsNews(const Observation* before, const Observation& now);

}  // namespace medley::ops
