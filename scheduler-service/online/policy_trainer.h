// Trains the policy of one model on its measurements. Internal to online/. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/online/replay_buffer.h"
#include "scheduler-service/policy_net/trained_policy.h"

namespace medley::sched {

struct PolicyTrainerOptions {
  size_t most_schedules = 0;
  int first_rounds = 0;
  int rounds = 0;
  int hidden_units = 0;
};

class PolicyTrainer {
 public:
  PolicyTrainer(const PolicyTrainerOptions& options, policy_net::CellKind cell)
      : options_(options), cell_(cell), replay_buffer_(options.most_schedules) {}

  // Adds `schedule` (types of `problem`) with its measured cost to the replay buffer, and trains the policy. `log_cost`
  // is the natural logarithm of USD per sample. `number` is the number of the observation and seeds the random draws.
  // Errors: those of InputsOf.
  absl::Status Train(const Problem& problem, const std::vector<int>& schedule, double log_cost, int64_t number);

  const policy_net::TrainedPolicy& policy() const { return policy_; }
  // Sets the initial policy before the first Train. Ignored if the policy does not have the right shape.
  void WarmStart(const Problem& problem, policy_net::TrainedPolicy policy);
  int64_t observed() const { return observed_; }

  std::string ToBytes() const;
  static absl::StatusOr<PolicyTrainer> FromBytes(std::string_view bytes, const PolicyTrainerOptions& options);

 private:
  // If the problem has types that the policy does not know, replaces the policy by an untrained one that knows them.
  // The measurements stay.
  void AddNewTypes(const Problem& problem);

  PolicyTrainerOptions options_;
  policy_net::CellKind cell_;
  policy_net::TrainedPolicy policy_;  // without actions before the first Train or WarmStart
  ReplayBuffer replay_buffer_;        // schedules in actions of the policy
  int64_t observed_ = 0;
};

}  // namespace medley::sched
