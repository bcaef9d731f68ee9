// A model with what was measured of it on units of some types. Immutable values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/allreduce_algorithm.h"
#include "common/model/link_speed.h"
#include "common/model/model.h"

namespace medley::model {

// What a unit of a type may use of processors, its CPU limit, and of the memory of its GPU.
struct UnitCpus {
  std::string resource_type;
  double cores = 0;                // 0: unknown, or no limit
  double period_seconds = 0;       // in which the limit grants that part of a period; 0: unknown
  double device_memory_bytes = 0;  // of its GPU that a trainer may use; 0: none, or unknown
  bool operator==(const UnitCpus&) const = default;
};

struct Profile {
  std::string id;
  Model model;
  int profile_batch_size = 0;  // B_o
  std::vector<Link> links;
  double state_factor = 3;  // (weights + gradient + optimizer state) / weights
  int64_t samples_per_epoch = 0;
  int micro_batches = 0;  // in which the batch was divided for compute_seconds; 0: unknown
  std::vector<AllreduceMeasurement> allreduces;
  std::vector<UnitCpus> units;  // of those that were measured, at most one for each type
  bool operator==(const Profile&) const = default;
};

}  // namespace medley::model
