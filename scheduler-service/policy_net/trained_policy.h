// A policy together with what it was trained for, as a value and as bytes.
//
// The bytes: magic "MDLYPOL", version, cell, sizes, names of actions, scales of features, float32 parameters, all
// little-endian, and an XXH3 checksum of everything before it.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/policy_net/policy_shape.h"

namespace medley::policy_net {

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
  std::vector<float> parameters;  // as ParameterLayout says
  int64_t updates = 0;            // gradient steps so far
  bool operator==(const TrainedPolicy&) const = default;
};

std::string ToBytes(const TrainedPolicy& policy);

// Errors: InvalidArgument that says what is wrong: not a policy, another version, cut short, damaged, impossible sizes,
// parameters that are not finite.
absl::StatusOr<TrainedPolicy> PolicyFromBytes(std::string_view bytes);

// Bounds of what is read and made.
inline constexpr size_t kMaxName = 256;  // bytes of an action's name
inline constexpr int kMaxHidden = 512;
inline constexpr int kMaxActions = 64;
inline constexpr int kMaxFeatures = 4096;

}  // namespace medley::policy_net
