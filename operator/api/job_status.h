// The `status` of a TrainingJob. Values; not synchronised. Money is in USD.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/conditions.h"
#include "operator/api/embedding_status.h"
#include "operator/api/goodput_status.h"

namespace medley::ops {

// Types of conditions.
inline constexpr char kPlannedCondition[] = "Planned";
inline constexpr char kPodsReadyCondition[] = "PodsReady";
inline constexpr char kPoolsUsableCondition[] = "PoolsUsable";
inline constexpr char kNamesAvailableCondition[] = "NamesAvailable";
inline constexpr char kRecordsGenuineCondition[] = "RecordsGenuine";
inline constexpr char kRunningCondition[] = "Running";
inline constexpr char kRescalingCondition[] = "Rescaling";
inline constexpr char kSuspendedCondition[] = "Suspended";
inline constexpr char kRestartingCondition[] = "Restarting";
inline constexpr char kCheckpointFailingCondition[] = "CheckpointFailing";
inline constexpr char kCompleteCondition[] = "Complete";
inline constexpr char kFailedCondition[] = "Failed";
// All of them. Conditions of other types belong to other controllers.
inline constexpr std::array<std::string_view, 12> kJobConditions = {
    kPlannedCondition,        kPodsReadyCondition,         kPoolsUsableCondition, kNamesAvailableCondition,
    kRecordsGenuineCondition, kRunningCondition,           kRescalingCondition,   kSuspendedCondition,
    kRestartingCondition,     kCheckpointFailingCondition, kCompleteCondition,    kFailedCondition};

struct PlanStatus {
  struct Stage {
    std::string layers;  // "1-5"
    std::string pool;
    int units = 0;
    double throughput = 0;    // samples/s, estimated for the stage
    std::string zone = {};    // that its pods are pinned to; empty: any
    std::string tables = {};  // Device, Cache or Host; empty: no embedding tables for a GPU
    bool operator==(const Stage&) const = default;
  };
  // The best plan that uses one pool only (PlanResponse.alternatives), for users to compare the plan with.
  struct Alternative {
    std::string label;
    double throughput = 0;
    double usd_per_hour = 0;
    double usd_total = 0;
    std::string reason;  // why no plan on that pool alone meets the goal; empty when one does
    bool operator==(const Alternative&) const = default;
  };
  int64_t generation = 0;
  std::string planner;
  std::string summary;
  std::vector<Stage> stages;
  int servers = 0;
  std::string server_pool;
  int trainers_with_rows = 0;  // that keep the embedding rows instead of servers
  double usd_per_hour = 0;
  double throughput = 0;
  double usd_total = 0;  // for the samples that were left when the plan was made
  std::vector<Alternative> alternatives;
  int64_t catalog_revision = 0;
  std::string price_time;
  double throughput_spread = 0;     // relative standard deviation of throughput, by that of the layers; 0: not known
  double simulated_throughput = 0;  // samples/s; 0: not simulated
  bool operator==(const PlanStatus&) const = default;
};

struct EvaluationStatus {
  int64_t step = 0;
  int epochs = 0;
  std::optional<double> loss;  // of the training, since the evaluation before
  std::map<std::string, double> metrics;
  std::string at;
  bool operator==(const EvaluationStatus&) const = default;
};

struct BestStatus {
  int64_t step = 0;
  int epoch = 0;       // complete passes over the training data
  std::string metric;  // as in manifests
  double value = 0;
  std::string data;  // Validation or Test
  bool operator==(const BestStatus&) const = default;
};

struct ExportedStatus {
  std::string model;  // Best or Last
  int64_t step = 0;
  int epoch = 0;
  bool operator==(const ExportedStatus&) const = default;
};

struct CoursePoint {
  int64_t step = 0;
  double loss = 0;        // mean of the last steps, of the training
  double throughput = 0;  // samples/s
  bool operator==(const CoursePoint&) const = default;
};

struct ObservedStatus {
  double throughput = 0;
  int64_t samples = 0;
  int64_t samples_total = 0;
  int64_t step = 0;
  std::string epoch;  // the pass over the data that is trained, as in "3/14"; empty: not known yet
  int progress_percent = 0;
  int64_t estimated_remaining_seconds = 0;
  double loss = 0;
  int64_t bad_rows = 0;
  int64_t last_checkpoint_step = 0;
  std::map<std::string, double> metrics;
  std::vector<EvaluationStatus> evaluations;
  std::optional<BestStatus> best;
  std::optional<ExportedStatus> exported;
  std::vector<CoursePoint> course{};            // in the order of the steps
  std::optional<EmbeddingStatus> embeddings{};  // absent: all rows are in memory
  std::optional<TablesStatus> tables{};         // absent: no trainer with tables computes on a GPU
  bool operator==(const ObservedStatus&) const = default;
};

struct CostStatus {
  double spent_usd = 0;       // by all pods of the job, each from its creation to its end
  std::string counted_until;  // RFC 3339; empty: nothing was counted yet
  double usd_per_million_samples = 0;
  // By training, compared with the first plan; absent before the job has moved to another plan.
  std::optional<double> saved_usd;
  bool operator==(const CostStatus&) const = default;
};

struct RescaleStatus {
  int64_t from_generation = 0;
  int64_t to_generation = 0;
  std::string reason;
  double pause_seconds = 0;
  std::string at;
  bool recovery = false;     // true: after the loss of a member; false: a planned rescale
  int64_t lost_steps = 0;    // steps that had to be trained again
  double start_seconds = 0;  // of the pause: from the start of a program to its first step; 0: no program
  bool operator==(const RescaleStatus&) const = default;
};

// How long a step of a program takes on a number of units of a pool.
struct SizeStatus {
  std::string pool;
  int units = 0;
  double seconds_per_step = 0;
  double spread = 0;         // relative standard deviation of seconds_per_step
  int64_t measurements = 0;  // that count, at most 24
  bool operator==(const SizeStatus&) const = default;
};

struct JobStatus {
  int64_t observed_generation = 0;
  Conditions conditions;
  std::optional<PlanStatus> plan;
  std::optional<ObservedStatus> observed;
  std::optional<CostStatus> cost;
  std::optional<GoodputStatus> goodput;
  int replicas = 0;
  std::string selector;
  int restarts = 0;          // of the whole job, for any reason
  int counted_restarts = 0;  // of them, those that count towards runPolicy.backoffLimit
  // How far the job had come at the last of those: the step of its last checkpoint or, without a checkpoint volume,
  // samples.
  int64_t restart_progress = 0;
  int64_t coordinator_term = 0;  // the largest that a coordinator of the job was given
  std::optional<RescaleStatus> last_rescale;
  std::vector<RescaleStatus> rescales;  // the last 32 generation switches, from Observation.switches
  std::vector<SizeStatus> sizes;        // of a program: those on which it has run, at most 64
  std::string start_time;               // RFC 3339 or empty
  std::string completion_time;

  bool finished() const { return conditions.IsTrue(kCompleteCondition) || conditions.IsTrue(kFailedCondition); }
  // The phase that `kubectl get` prints: one word, computed from the conditions.
  std::string Phase() const;
  // The reason of the condition that decides the phase; empty while the job runs, or when there is none.
  std::string Reason() const;

  static JobStatus FromJson(const kube::Json& status);
  kube::Json ToJson() const;
  bool operator==(const JobStatus&) const = default;
};

}  // namespace medley::ops
