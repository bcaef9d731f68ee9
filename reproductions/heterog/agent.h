// The agent of HeteroG (section 4.1.3): draws strategies for questions, has them timed, and learns by REINFORCE.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reproductions/heterog/policy.h"
#include "scheduler-service/graph/search.h"
#include "scheduler-service/planning/planner.h"

namespace medley::reproductions::heterog {

struct AgentRound {
  double mean_reward = 0;
  double best_seconds = sched::kForever;  // of what it drew
};

// Learns on one question. Not thread-safe; the policy and what the question names must outlive it.
class AgentLearner {
 public:
  // `q`: some strategies were timed already; the best of them gives the size of buckets and the order, and its seconds
  // are the unit of rewards.
  AgentLearner(AgentPolicy& policy, const sched::GraphQuestion& q, int draws);

  // Draws, times and learns, also from the best strategy so far; the policy steps after it. A reward is
  // -sqrt(seconds / unit), and where a strategy does not fit, or takes over 100 units, ten times that of one unit.
  AgentRound Round();
  // Times the most likely strategy. Returns its seconds.
  double TryMostLikely();

 private:
  double Reward(double seconds) const;
  sched::GraphStrategy With(AgentDraw actions) const;

  AgentPolicy& policy_;
  const sched::GraphQuestion& q_;
  const int draws_;
  const AgentFeatures features_;
  sched::GraphStrategy around_;
  double unit_ = 1;
  bool known_ = false;
  double average_ = 0;  // moving, of rewards
};

struct AgentOptions {
  AgentSettings settings;
  int draws_a_round = 8;
  // The part of the simulations that local search gets, from the best strategy of the agent; 0: none.
  double polish = 0.5;
  std::string_view weights;  // that it begins with; empty: random ones. Must outlive the search
};

// After TryBaselines. Learns until its simulations are spent or it draws nothing new; then local search. Errors: those
// of AgentPolicy::Load.
absl::Status SearchGraphByAgent(const sched::GraphQuestion& q, uint64_t seed, const AgentOptions& options);

// The weights that this program carries, for the default settings. reproductions/heterog/README.md says how they were
// made.
std::string_view ShippedAgentWeights();

// `graph-agent`, and `graph-agent-paper` with the paper's sizes: from random weights, without local search.
std::vector<std::unique_ptr<sched::Planner>> MakeGraphAgentPlanners();

}  // namespace medley::reproductions::heterog
