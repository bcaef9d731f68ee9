// Stages with their units, cost and throughput. Immutable values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/model/reason.h"
#include "common/model/table_place.h"

namespace medley::model {

struct ProvisionedStage {
  int first_layer = 0;
  int last_layer = 0;  // inclusive
  std::string resource_type;
  int units = 0;
  double throughput = 0;       // samples/s
  double compute_seconds = 0;  // CT_i(k) in the paper
  double comm_seconds = 0;     // DT_i(k) in the paper
  Tables tables = {};          // kUnspecified: no tables, or on no GPU
  bool operator==(const ProvisionedStage&) const = default;
};

struct ProvisionedPlan {
  std::vector<ProvisionedStage> stages;
  int server_units = 0;
  double throughput = 0;
  double cost_usd = 0;
  double cost_per_hour = 0;
  double execution_seconds = 0;
  int trainers_with_rows = 0;  // that have a shard of the embedding rows; 0: none are in trainers
  bool operator==(const ProvisionedPlan&) const = default;
};

struct Alternative {
  std::string label;
  std::optional<ProvisionedPlan> plan;
  std::vector<Reason> reasons;
};

}  // namespace medley::model
