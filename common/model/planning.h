// A planning question and its answer, as domain values (the wire form is medley.scheduler.v1).
//
// Immutable values. Money is USD, times are seconds, sizes bytes; 0 means "no such constraint" where said.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "common/model/model.h"

namespace medley::model {

enum class ResourceClass { kCpu, kGpu };

// The price key: what a cloud sells.
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
  double price_per_unit_hour = 0;  // 0 with an offering: to be filled in from the catalog
  int limit = 0;                   // units
  double memory_bytes = 0;         // of a unit; 0: not bounded
  std::optional<Offering> offering;
  std::string hardware;  // datasheet for layers without a profile on this type, or empty
  bool operator==(const Resource&) const = default;
};

struct Training {
  double profile_batch_size = 0;  // B_o
  double samples_per_epoch = 0;
  double epochs = 1;
  double state_factor = 3;
  double remaining_samples = 0;  // 0: samples_per_epoch * epochs
  int micro_batches = 1;
  double TotalSamples() const { return remaining_samples > 0 ? remaining_samples : samples_per_epoch * epochs; }
};

struct Constraints {  // 0: none
  double min_throughput = 0;
  double max_cost_per_hour = 0;
  double deadline_seconds = 0;
  double budget_usd = 0;
  int min_units = 1;  // trainers of every stage
  int max_units = 0;  // trainers of all stages together
};

// A policy over layers trained by REINFORCE (HeterPS, Algorithm 1). 0: the planner's default.
struct RecurrentOptions {
  int rounds = 0;             // updates of the policy
  int samples_per_round = 0;  // schedules drawn for one update
  int hidden_units = 0;
  double learning_rate = 0;
  double baseline_decay = 0;  // of the moving average of rewards, in (0, 1)
  std::string policy;         // bytes of a trained policy to begin with, or empty
  std::string policy_name;    // or the name of one that the service keeps
  bool inference_only = false;
  bool return_policy = false;
};

struct GeneticOptions {  // 0: the planner's default
  int population = 0;
  int generations = 0;
  double mutation_rate = 0;  // of a layer, in (0, 1]
};

struct BayesianOptions {  // 0: the planner's default
  int evaluations = 0;
  int initial_samples = 0;
};

struct PlannerOptions {
  std::string name = "exact";
  uint64_t seed = 1;
  double time_budget_seconds = 10;
  ScheduleKind schedule = ScheduleKind::kSync1F1B;
  RecurrentOptions recurrent;
  GeneticOptions genetic;
  BayesianOptions bayesian;
};

struct PlanRequest {
  Model model;
  Training training;
  Constraints constraints;
  std::vector<Resource> resources;
  std::string server_type;
  double server_memory_bytes = 0;  // 0: not bounded
  PlannerOptions planner;
  std::string profile_id;
};

// Everything a planner relies on: sizes, ranges, names that are unique and known. Errors: InvalidArgument naming the
// field's path in its JSON spelling; the first one found. Says nothing of feasibility.
absl::Status Validate(const PlanRequest& request);
// Its parts alone.
absl::Status Validate(const Model& model);
absl::Status Validate(const Training& training);

// True when operation `i` is synchronised by parameter servers if a stage runs it on `type`: it says so by its
// profile's server_seconds > 0. False for a type that it has no profile of.
bool NeedsServers(const Layer& layer, const std::string& type);

struct ProvisionedStage {
  int first_layer = 0;
  int last_layer = 0;  // inclusive
  std::string resource_type;
  int units = 0;
  double throughput = 0;       // samples/s
  double compute_seconds = 0;  // CT_i(k)
  double comm_seconds = 0;     // DT_i(k)
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

// Why there is no plan, in words that a person can act on. The reasons of an answer are the smallest set of constraints
// that cannot hold together. Of limit, memory, maxCostPerHour, budget and maxUnits `available` is the bound given and
// `needed` the least that would make the request feasible; of minThroughput, deadline and minUnits `needed` is the
// bound given and `available` the best that the rest allows.
struct Reason {
  std::string constraint;  // as in the wire form
  std::string resource_type;
  double needed = 0;
  double available = 0;
  std::string message;
};

struct Alternative {
  std::string label;
  std::optional<ProvisionedPlan> plan;
  std::vector<Reason> reasons;
};

// What the profile's seconds on one resource type were multiplied by, after observations; 1: as profiled.
struct Correction {
  std::string resource_type;
  double compute = 1;
  double comm = 1;
  int observations = 0;
  bool operator==(const Correction&) const = default;
};

// How far predictions of a model have been from measurements.
struct Prediction {
  int observations = 0;
  double ratio_uncorrected = 1;  // median of measured over predicted throughput
  double ratio_corrected = 1;
  double relative_error = 0;  // median of |measured - predicted| / measured, corrected
  std::vector<Correction> corrections;
  bool operator==(const Prediction&) const = default;
};

struct PlanResult {
  std::optional<ProvisionedPlan> plan;  // none: infeasible, see reasons
  std::vector<Reason> reasons;
  std::string planner;
  double planning_seconds = 0;
  uint64_t seed = 0;
  std::optional<double> lower_bound_usd;
  std::optional<double> gap;  // (cost - lower bound) / cost
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
  std::optional<ExecutionPlan> execution_plan;
  std::vector<Alternative> alternatives;
  std::vector<Resource> resources;       // as planned with, prices filled in
  std::optional<Prediction> prediction;  // none: nothing was observed yet
  std::string policy;                    // RecurrentOptions::return_policy; bytes
  // Not on the wire: false when time or the caller ended planning, so that another run might answer otherwise.
  bool complete = true;
};

}  // namespace medley::model
