// What a job measured over a window of steps of one generation, beside the question that its running plan answered (the
// wire form is medley.scheduler.v1.ObserveRequest). Immutable value.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/planning.h"

namespace medley::model {

// One stage as measured: mean seconds of one step, all its units working at once on `batch_size` samples together.
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
  PlanRequest request;  // model with its profiles, training; prices, limits and goals are not read
  std::vector<StageMeasurement> stages;
  double throughput = 0;  // samples/s
  double batch_size = 0;  // samples a step, all replicas together
  int server_units = 0;
  double usd_per_hour = 0;
  std::string job_uid;
  int64_t generation = 0;
};

// Everything that a reader relies on: the model and the training are well-formed, the stages cover all layers in
// order, each layer is profiled on its stage's type, and what was measured is finite and above 0 (communication and
// money: not negative). Errors: InvalidArgument naming the field's path.
absl::Status Validate(const JobObservation& observation);

}  // namespace medley::model
