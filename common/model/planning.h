// A planning request and its result, as domain values (the protos are in medley.scheduler.v1).
//
// Immutable values. Money is in USD, time in seconds, sizes in bytes. Where noted, 0 means "not constrained".
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/model/cluster.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"

namespace medley::model {

enum class ResourceClass { kCpu, kGpu };

// What a provider sells; prices are looked up by it.
struct Offering {
  std::string provider;
  std::string region;
  std::string zone;
  std::string instance_type;
  std::string capacity_type;
  double units_per_instance = 1;
  // "provider/region/zone/instance_type/capacity_type"
  std::string KeyString() const;
  bool operator==(const Offering&) const = default;
};

struct Resource {
  std::string name;
  ResourceClass cls = ResourceClass::kCpu;
  double price_per_unit_hour = 0;  // 0 with an offering: filled in from the catalog
  int limit = 0;                   // units
  double memory_bytes = 0;         // of a unit; 0: unlimited
  std::optional<Offering> offering;
  std::string hardware;  // datasheet that estimates layers without a profile on this type, or empty
  // Processor time of a unit for each message that it sends or receives (Link). 0: unknown.
  double processor_seconds_per_message = 0;
  double processor_seconds_per_byte = 0;
  bool operator==(const Resource&) const = default;
};

struct Training {
  double profile_batch_size = 0;  // B_o in the paper
  double samples_per_epoch = 0;
  double epochs = 1;
  double state_factor = 3;
  double remaining_samples = 0;  // samples left to train; 0: samples_per_epoch * epochs
  // For a step. 0: not given; a plan then has 1, and planning does not count how pipelines fill and drain.
  int micro_batches = 0;
  double TotalSamples() const { return remaining_samples > 0 ? remaining_samples : samples_per_epoch * epochs; }
};

struct Constraints {  // 0: not constrained
  double min_throughput = 0;
  double max_cost_per_hour = 0;
  double deadline_seconds = 0;
  double budget_usd = 0;
  int min_units = 1;  // minimum trainers of every stage
  int max_units = 0;  // maximum trainers of all stages together
};

// A trained policy, for planners that learn one.
struct PolicyOptions {
  std::string trained;          // a policy to start from (bytes), or empty
  std::string name;             // of a policy kept by the service to start from, or empty
  bool inference_only = false;  // do not train `trained` further
  bool return_policy = false;   // put the final policy into PlanResult::policy
  bool operator==(const PolicyOptions&) const = default;
};

// Options of the named planner, which alone knows and checks them (scheduler-service/options).
using OptionValue = std::variant<bool, double, std::string>;
using OptionValues = std::map<std::string, OptionValue>;

// Groups of replicas that the planner forms in every stage (Sync::hierarchy): none, of about the square root of their
// number within a pool, or one for each pool of the stage. With Objective::kStepTime the planner `hierarchy` forms them
// among devices: kNone and kAuto, the fastest; kPool, by pool; kLinks, for that goal only, by links and power.
enum class Grouping { kNone, kAuto, kPool, kLinks };

// How replicas synchronise. Other modes than kFull need one stage that holds the whole model, without parameter
// servers.
struct Synchronisation {
  SyncMode mode = SyncMode::kFull;
  double fraction = 1;                               // kPercentage, in (0, 1]
  double target_ratio = 0.02;                        // kFlexible, > 0: time of synchronisation over time of computation
  Grouping hierarchy = Grouping::kNone;              // kPool: only with kFull
  AnomalyDetector detector = AnomalyDetector::kOff;  // of slow replicas
  int anomaly_window = 16;                           // steps
  double anomaly_threshold = 3;                      // standard deviations
  bool operator==(const Synchronisation&) const = default;
};

// What chooses among the best candidates of the search, which is by the cost model: the simulator where it can, or the
// cost model.
enum class EvaluatorKind { kSimulator, kCostModel };

struct PlannerOptions {
  std::string name = "exact";
  uint64_t seed = 1;
  double time_budget_seconds = 10;
  ScheduleKind schedule = ScheduleKind::kSync1F1B;
  int max_staleness = 0;  // kAsync1F1B: the most versions by which a gradient may be late; 0: no limit
  Synchronisation sync;
  EvaluatorKind evaluator = EvaluatorKind::kSimulator;
  OptionValues options;
  PolicyOptions policy;
  bool asynchronous() const { return schedule == ScheduleKind::kAsync1F1B; }
};

// What a plan is to be good at, under the constraints: the least USD for the samples that are left, the fewest seconds
// of a step on the devices of a cluster, the least USD per hour, or the fewest seconds to the end. The steps that are
// left are the same for every plan of a cluster, so kTime asks there for the same plan as kStepTime.
enum class Objective { kCost, kStepTime, kCostPerHour, kTime };

struct PlanRequest {
  Model model;
  Training training;
  Constraints constraints;
  std::vector<Resource> resources;
  std::string server_type;
  double server_memory_bytes = 0;  // 0: unlimited
  PlannerOptions planner;
  std::string profile_id;
  bool simulate = false;  // fill in Estimate::simulated_throughput
  std::vector<AllreduceMeasurement> allreduces;
  Objective objective = Objective::kCost;
  Cluster cluster;  // needed with kStepTime; with it, plans name devices, and the simulator judges them
  bool on_devices() const { return objective == Objective::kStepTime || !cluster.devices.empty(); }
  // Between units of the resources, as measured: the simulator's times of messages and sums. With kCost.
  std::vector<Link> links;
};

// Checks all that planners rely on: sizes, ranges, and that names are unique and known. Errors: InvalidArgument naming
// the JSON path of the first invalid field. It does not check feasibility. With a cluster every layer must have a
// profile for every pool of the cluster, no layer may need parameter servers, and LinkTable::Make checks the links.
absl::Status Validate(const PlanRequest& request);
// These check only the model and only the training.
absl::Status Validate(const Model& model);
absl::Status Validate(const Training& training);

// What a request says of its model, for the simulator. Its links are those of the request, and, for a type that has
// none with itself, one whose speed is 0, unknown: it says what a message costs the processor of a unit.
Profile ProfileOf(const PlanRequest& request);

// True if a stage that runs `layer` on `type` synchronises it by parameter servers, which a profile expresses by
// server_seconds > 0. False if the layer has no profile for `type`.
bool NeedsServers(const Layer& layer, const std::string& type);

struct ProvisionedStage {
  int first_layer = 0;
  int last_layer = 0;  // inclusive
  std::string resource_type;
  int units = 0;
  double throughput = 0;       // samples/s
  double compute_seconds = 0;  // CT_i(k) in the paper
  double comm_seconds = 0;     // DT_i(k) in the paper
  bool operator==(const ProvisionedStage&) const = default;
};

struct ProvisionedPlan {
  std::vector<ProvisionedStage> stages;
  int server_units = 0;
  double throughput = 0;
  double cost_usd = 0;
  double cost_per_hour = 0;
  double execution_seconds = 0;
  bool operator==(const ProvisionedPlan&) const = default;
};

// One constraint that makes a request infeasible. The reasons of a result are a smallest set of constraints that cannot
// hold together. For limit, memory, maxCostPerHour, budget and maxUnits, `available` is the given bound and `needed` is
// the smallest bound that would make the request feasible. For minThroughput, deadline and minUnits, `needed` is the
// given bound and `available` is the best value that the other constraints allow.
struct Reason {
  std::string constraint;  // as in the proto
  std::string resource_type;
  double needed = 0;
  double available = 0;
  std::string message;  // a sentence that says what the user can change
};

struct Alternative {
  std::string label;
  std::optional<ProvisionedPlan> plan;
  std::vector<Reason> reasons;
};

// The factors that observations led to for one resource type: profiled seconds are multiplied by them. 1: unchanged.
struct Correction {
  std::string resource_type;
  double compute = 1;
  double comm = 1;
  int observations = 0;
  bool operator==(const Correction&) const = default;
};

// How predictions of a model compare with measurements.
struct Prediction {
  int observations = 0;
  double ratio_uncorrected = 1;  // median of measured over predicted throughput
  double ratio_corrected = 1;    // the same after the corrections
  double relative_error = 0;     // median of |measured - predicted| / measured, after the corrections
  std::vector<Correction> corrections;
  bool operator==(const Prediction&) const = default;
};

// The answer to a request with a cluster. Seconds are those of a step in steady state.
struct StepTimePlan {
  double seconds = 0;  // by the simulator
  double throughput = 0;
  double lower_bound_seconds = 0;  // proven for the closed form, or without one for every plan; 0: not proven
  double model_seconds = 0;        // by the closed form with which the planner searched; 0: it has none
  int64_t simulated = 0;           // plans that were timed by the simulator
  int64_t repaired = 0;            // plans that were illegal, so the planner changed them
  struct Alternative {
    std::string label;
    double seconds = 0;
    std::string failure;      // why there is no such plan, instead of seconds
    double usd_per_hour = 0;  // 0: unknown
    bool operator==(const Alternative&) const = default;
  };
  std::vector<Alternative> alternatives;
  std::string explanation;    // one fact a line
  double usd_per_hour = 0;    // of the devices of the plan; 0: one of them has no price
  double usd_per_step = 0;    // the same for a step
  double seconds_to_end = 0;  // of the samples that are left; 0: the request does not say how many
  double usd = 0;             // for them; 0: unknown
  int choices = 0;  // choices of devices that were planned on, because of the constraints; 0: all devices only
  bool operator==(const StepTimePlan&) const = default;
};

// What the simulator says of PlanResult::plan, which it chose.
struct SimulatedPlan {
  double throughput = 0;  // samples/s
  double cost_usd = 0;
  int candidates = 0;  // plans that were compared by the simulator
  bool operator==(const SimulatedPlan&) const = default;
};

struct PlanResult {
  std::optional<ProvisionedPlan> plan;  // nullopt: infeasible, see reasons; or `step_time` is set
  std::optional<StepTimePlan> step_time;
  std::optional<SimulatedPlan> simulated;  // nullopt: not simulated
  std::vector<Reason> reasons;
  std::string planner;
  double planning_seconds = 0;
  uint64_t seed = 0;
  std::optional<double> lower_bound_usd;
  std::optional<double> gap;                       // of the objective: (value - bound) / value
  std::optional<double> lower_bound_usd_per_hour;  // instead of lower_bound_usd, with kCostPerHour
  std::optional<double> lower_bound_seconds;       // the same, with kTime
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
  std::optional<ExecutionPlan> execution_plan;
  std::vector<Alternative> alternatives;
  std::vector<Resource> resources;       // those of the request, with prices filled in
  std::optional<Prediction> prediction;  // nullopt: nothing was observed yet
  std::string policy;                    // bytes; set if PolicyOptions::return_policy
  std::vector<std::string> notes;        // sentences, for example why the plan is not of the requested planner
  // Not in the proto. False if the time budget or the caller ended planning early, or if the planner is not
  // deterministic: another run may find another plan.
  bool complete = true;
};

}  // namespace medley::model
