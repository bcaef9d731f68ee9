#include "scheduler-service/planner/policy_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr int kIndexBuckets = 64;
// The last entry stands for all other kinds.
constexpr std::array<std::string_view, 11> kKinds = {"EMBEDDING",
                                                     "FULLY_CONNECTED",
                                                     "CONVOLUTION",
                                                     "POOLING",
                                                     "NORMALIZATION",
                                                     "ACTIVATION",
                                                     "RECURRENT",
                                                     "ATTENTION",
                                                     "LOSS",
                                                     "OTHER",
                                                     ""};
enum Scale { kInput, kWeight, kComm, kScales };
constexpr double kLeastSeconds = 1e-9;
constexpr int kCommFeatures = kIndexBuckets + static_cast<int>(kKinds.size()) + 2;

size_t IndexOf(int i) { return static_cast<size_t>(i); }
int FeatureCount(int types) { return kCommFeatures + types; }

size_t KindOf(const model::Layer& layer) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), layer.kind);
  return found == kKinds.end() ? kKinds.size() - 1 : static_cast<size_t>(found - kKinds.begin());
}

double LogBytes(double bytes) { return std::log1p(bytes); }

// Logarithm of the communication seconds of a stage with this layer alone, on one unit.
double LogCommSeconds(const Problem& problem, int layer, int t) {
  const StageTerms terms = problem.Terms(layer, layer, t);
  return std::log(std::max(terms.CommSeconds(1), kLeastSeconds));
}

class Moments {
 public:
  void Add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  policy_net::FeatureScale Result() const {
    if (count_ == 0) return {};
    const double mean = sum_ / count_;
    const double variance = squares_ / count_ - mean * mean;
    return {mean, variance > 1e-12 ? std::sqrt(variance) : 1};
  }

 private:
  double count_ = 0, sum_ = 0, squares_ = 0;
};

float Standard(double value, const policy_net::FeatureScale& scale) {
  return static_cast<float>(std::clamp((value - scale.mean) / scale.scale, -10.0, 10.0));
}

void FillLayer(const Problem& problem, const policy_net::TrainedPolicy& policy, const ActionMap& map, int layer,
               float* features, uint8_t* allowed) {
  const model::Layer& from = problem.request().model.layers[IndexOf(layer)];
  const int bucket =
      problem.layers() <= kIndexBuckets ? layer : static_cast<int>(int64_t{layer} * kIndexBuckets / problem.layers());
  features[bucket] = 1;
  features += kIndexBuckets;
  features[KindOf(from)] = 1;
  features += kKinds.size();
  *features++ = Standard(LogBytes(from.input_bytes), policy.scales[kInput]);
  *features++ = Standard(LogBytes(from.weight_bytes), policy.scales[kWeight]);
  bool memory_fits = false;
  for (size_t a = 0; a < map.type_of.size(); ++a) {
    const int t = map.type_of[a];
    if (t < 0 || !problem.Profiled(layer, t)) continue;
    features[a] = Standard(LogCommSeconds(problem, layer, t), policy.scales[kComm]);
    allowed[a] = problem.limit(t) > 0 && problem.Allowed(layer, layer, t);
    memory_fits = memory_fits || allowed[a] != 0;
  }
  if (memory_fits) return;  // otherwise nothing is feasible, so allow all types with a profile of the layer
  for (size_t a = 0; a < map.type_of.size(); ++a) {
    allowed[a] = map.type_of[a] >= 0 && problem.Profiled(layer, map.type_of[a]);
  }
}

}  // namespace

policy_net::TrainedPolicy EmptyPolicy(const Problem& problem, policy_net::CellKind cell, int hidden) {
  policy_net::TrainedPolicy policy;
  policy.shape = {cell, FeatureCount(problem.types()), problem.types(), hidden};
  for (int t = 0; t < problem.types(); ++t) policy.actions.push_back(problem.type(t).name);
  std::array<Moments, kScales> moments;
  for (int layer = 0; layer < problem.layers(); ++layer) {
    const model::Layer& from = problem.request().model.layers[IndexOf(layer)];
    moments[kInput].Add(LogBytes(from.input_bytes));
    moments[kWeight].Add(LogBytes(from.weight_bytes));
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.Profiled(layer, t)) moments[kComm].Add(LogCommSeconds(problem, layer, t));
    }
  }
  for (const Moments& m : moments) policy.scales.push_back(m.Result());
  return policy;
}

absl::StatusOr<ActionMap> MapActions(const Problem& problem, const policy_net::TrainedPolicy& policy) {
  std::string known;
  for (const std::string& name : policy.actions) known += (known.empty() ? "" : ", ") + name;
  ActionMap map;
  map.type_of.assign(policy.actions.size(), -1);
  for (int t = 0; t < problem.types(); ++t) {
    const auto found = std::find(policy.actions.begin(), policy.actions.end(), problem.type(t).name);
    if (found == policy.actions.end()) {
      return base::InvalidArgument(
          "planner.policy.trained: does not fit: it was trained for the types {}, but resources[{}] is '{}'", known, t,
          problem.type(t).name);
    }
    const auto action = static_cast<int>(found - policy.actions.begin());
    map.action_of.push_back(action);
    map.type_of[IndexOf(action)] = t;
  }
  return map;
}

absl::StatusOr<policy_net::PolicyInputs> InputsOf(const Problem& problem, const policy_net::TrainedPolicy& policy) {
  const int actions = policy.shape.actions;
  if (policy.shape.features != FeatureCount(actions) || policy.scales.size() != kScales) {
    return base::InvalidArgument(
        "planner.policy.trained: does not fit: it has {} features per layer and {} scales, this version needs {} and "
        "{}",
        policy.shape.features, policy.scales.size(), FeatureCount(actions), static_cast<int>(kScales));
  }
  MEDLEY_ASSIGN_OR_RETURN(const ActionMap map, MapActions(problem, policy));
  policy_net::PolicyInputs inputs;
  inputs.steps = problem.layers();
  inputs.features.assign(IndexOf(inputs.steps) * IndexOf(policy.shape.features), 0);
  inputs.allowed.assign(IndexOf(inputs.steps) * IndexOf(actions), 0);
  for (int layer = 0; layer < inputs.steps; ++layer) {
    FillLayer(problem, policy, map, layer, inputs.features.data() + IndexOf(layer) * IndexOf(policy.shape.features),
              inputs.allowed.data() + IndexOf(layer) * IndexOf(actions));
  }
  return inputs;
}

}  // namespace medley::sched
