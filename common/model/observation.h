// What a job measured over a window of steps of one generation, with the plan request whose plan it runs (the proto is
// medley.scheduler.v1.ObserveRequest). Immutable value.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/planning.h"

namespace medley::model {

// Measurements of one stage: mean seconds per step while all its units together process `batch_size` samples.
struct StageMeasurement {
  int first_layer = 0;
  int last_layer = 0;  // inclusive
  std::string resource_type;
  int units = 0;
  double compute_seconds = 0;
  double comm_seconds = 0;  // 0: not measured
  bool operator==(const StageMeasurement&) const = default;
};

struct JobObservation {
  PlanRequest request;  // only the model with its profiles and the training are read
  std::vector<StageMeasurement> stages;
  double throughput = 0;  // samples/s
  double batch_size = 0;  // samples per step over all replicas
  int server_units = 0;
  double usd_per_hour = 0;
  std::string job_uid;
  int64_t generation = 0;
};

// Checks that the model and the training are valid, the stages cover all layers in order, each layer has a profile for
// its stage's type, and measurements are finite and positive (communication and money may be 0). Errors:
// InvalidArgument naming the field's path.
absl::Status Validate(const JobObservation& observation);

}  // namespace medley::model
