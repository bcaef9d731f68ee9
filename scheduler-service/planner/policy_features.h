// A planning problem as a policy sees it: features of every layer (HeterPS, section 5.2) and the types it may go to.
//
// Features of a layer: its index (one-hot, 64 buckets; longer models share buckets), its kind (one-hot), input bytes,
// weight bytes and, for each of the policy's types, communication seconds; the last three as standardised logarithms.
// The layout depends on the policy's types alone, so a policy takes any model whose types it knows.
//
// Pure and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/policy_net/recurrent_policy.h"
#include "scheduler-service/policy_net/trained_policy.h"

namespace medley::sched {

// A policy without parameters for the types of `problem`, whose scales are those of its layers.
policy_net::TrainedPolicy EmptyPolicy(const Problem& problem, policy_net::CellKind cell, int hidden);

// What `policy` sees of `problem`. Errors: InvalidArgument when it does not fit: another feature layout, or a layer
// that is profiled on no type that the policy knows, or the problem has a type that it does not know.
absl::StatusOr<policy_net::PolicyInputs> InputsOf(const Problem& problem, const policy_net::TrainedPolicy& policy);

// Between the policy's actions and the problem's types: type_of[action] is -1 where the problem lacks the type.
struct ActionMap {
  std::vector<int> type_of;
  std::vector<int> action_of;
};
absl::StatusOr<ActionMap> MapActions(const Problem& problem, const policy_net::TrainedPolicy& policy);

}  // namespace medley::sched
