// Measures what each layer of a job's model costs on this machine and prints the profile for the
// operator.
//
// One line on the output: "MEDLEY-PROFILE {profile as proto3 JSON}" (medley.profile.v1.Profile).
// Within a few seconds.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <ostream>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "common/model/model.h"
#include "worker/data/dataset.h"
#include "worker/profiler/communication_probe.h"

namespace medley::worker {

struct ProfilerOptions {
  model::JobSpec job;
  std::string resource_type;            // name of the pool that this machine belongs to
  double budget_seconds = 4;            // of the measurements together
  base::Clock* clock = nullptr;         // required
  std::ostream* output = nullptr;       // required: gets the line
  CommunicationProbe* probe = nullptr;  // required
  std::string root;                     // put before the paths of file:// URIs
  std::stop_token stop;
};

// Reads the training data for its rows, measures, prints. Errors: the data's, InvalidArgument for
// the job's, Cancelled.
absl::Status RunProfiler(const ProfilerOptions& options);

}  // namespace medley::worker
