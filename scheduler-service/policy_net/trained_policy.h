// A policy together with its action names and feature scales, as a value and as bytes.
//
// Format: magic "MDLYPOL", version, cell, sizes, names of actions, scales of features, float32 parameters, all
// little-endian, followed by an XXH3 checksum of everything before it.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/policy_net/policy_shape.h"

namespace medley::sched::policy_net {

// How one real-valued feature is standardised: (value - mean) / scale.
struct FeatureScale {
  double mean = 0;
  double scale = 1;
  bool operator==(const FeatureScale&) const = default;
};

struct TrainedPolicy {
  PolicyShape shape;
  std::vector<std::string> actions;  // distinct names, in the order of the network's outputs
  std::vector<FeatureScale> scales;
  std::vector<float> parameters;  // in the order of ParameterLayout
  int64_t updates = 0;            // gradient steps so far
  bool operator==(const TrainedPolicy&) const = default;
};

std::string ToBytes(const TrainedPolicy& policy);

// Errors: InvalidArgument for anything that is not a policy, another version, truncated or damaged bytes, invalid
// sizes, and parameters that are not finite.
absl::StatusOr<TrainedPolicy> PolicyFromBytes(std::string_view bytes);

// Limits for reading and creating policies.
inline constexpr size_t kMaxName = 256;  // bytes of an action name
inline constexpr int kMaxHidden = 512;
inline constexpr int kMaxActions = 64;
inline constexpr int kMaxFeatures = 4096;

}  // namespace medley::sched::policy_net
