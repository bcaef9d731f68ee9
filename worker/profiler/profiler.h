// Measures the time of each layer of a job's model on this machine and prints the profile for the operator.
//
// Layers with embedding tables are also measured with their tables on the device, if there is one. Takes a few seconds
// and prints one line: "MEDLEY-PROFILE {profile as proto3 JSON}" (medley.profile.v1.Profile).
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "worker/data/dataset.h"
#include "worker/model/make_block.h"
#include "worker/profiler/communication_probe.h"

namespace medley::worker {

struct ProfilerOptions {
  model::JobSpec job;
  std::string profile_id;                   // model::ProfileHash of the job
  std::string resource_type;                // name of the pool that this machine belongs to
  double budget_seconds = 6;                // for the layers and links; half as much more for allreduces
  base::Clock* clock = nullptr;             // required
  std::ostream* output = nullptr;           // required; the line is printed here
  CommunicationProbe* probe = nullptr;      // required
  double cores = 0;                         // the unit's CPU limit; 0: unknown, or none
  double cpu_period_seconds = 0;            // in which it holds
  std::shared_ptr<ComputeThreads> threads;  // as many as a trainer on this machine has; null: one
  std::shared_ptr<device::Device> device;   // that a trainer on this machine computes on; null: the CPU
  BlockMaker make_block = MakeModelBlock;   // of a trainer on this machine
  std::string root;                         // prefix for the paths of file:// URIs
  SamplePlace place;                        // of the rows of large tables
  std::stop_token stop;
};

// Reads the training data, measures and prints. Errors: those of reading the data, InvalidArgument for the job's spec,
// Cancelled.
absl::Status RunProfiler(const ProfilerOptions& options);

}  // namespace medley::worker
