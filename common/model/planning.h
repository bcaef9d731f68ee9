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

#include "common/model/allreduce_algorithm.h"
#include "common/model/cluster.h"
#include "common/model/link_speed.h"
#include "common/model/model.h"
#include "common/model/resource.h"
#include "common/model/synchronisation.h"

namespace medley::model {

struct Profile;

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

// Where the rows of embedding tables are: on parameter servers, in the trainers of the stages that pull them, on the
// GPU of the only trainer of such a stage, or wherever it is better.
enum class RowsPlace { kServers, kTrainers, kDevice, kAny };

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
  // Between units of the resources, as measured: times of messages and sums, for the simulator and for the closed form
  // (pool_links.h says which holds between two pools). With kCost.
  std::vector<Link> links;
  RowsPlace rows = RowsPlace::kServers;
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

}  // namespace medley::model
