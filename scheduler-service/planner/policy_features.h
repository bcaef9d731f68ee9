// The inputs of a policy for a planning problem: the features of every layer (HeterPS, section 5.2) and its allowed
// types.
//
// The features of a layer are its index (one-hot, 64 buckets; longer models share buckets), its kind (one-hot), input
// bytes, weight bytes and, for each of the policy's types, communication seconds; the last three as standardised
// logarithms. The layout depends only on the policy's types, so a policy works for every model whose types it knows.
//
// Pure and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/policy_net/recurrent_policy.h"
#include "scheduler-service/policy_net/trained_policy.h"

namespace medley::sched {

// An untrained policy (without parameters) for the types of `problem`, with scales computed from its layers.
policy_net::TrainedPolicy EmptyPolicy(const Problem& problem, policy_net::CellKind cell, int hidden);

// The inputs of `policy` for `problem`. Errors: InvalidArgument if the policy does not fit: it has another feature
// layout, or the problem has a type that the policy does not know.
absl::StatusOr<policy_net::PolicyInputs> InputsOf(const Problem& problem, const policy_net::TrainedPolicy& policy);

// Maps between the policy's actions and the problem's types. type_of[action] is -1 if the problem does not have the
// type.
struct ActionMap {
  std::vector<int> type_of;
  std::vector<int> action_of;
};
absl::StatusOr<ActionMap> MapActions(const Problem& problem, const policy_net::TrainedPolicy& policy);

}  // namespace medley::sched
