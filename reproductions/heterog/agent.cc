#include "reproductions/heterog/agent.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/embedded_file.h"
#include "common/base/status.h"
#include "scheduler-service/graph/graph_planners.h"

MEDLEY_EMBEDDED(agent_weights);

namespace medley::reproductions::heterog {
namespace {

constexpr double kWorst = 10;         // what does not fit counts as this times one unit (section 4.1.3)
constexpr double kKeepAverage = 0.9;  // of the moving average, in each round
constexpr int kRoundsWithoutNews = 15;
constexpr int kPaperGroups = 2000;

}  // namespace

AgentLearner::AgentLearner(AgentPolicy& policy, const sched::GraphQuestion& q, int draws)
    : policy_(policy), q_(q), draws_(draws), features_(FeaturesOfGraph(q.problem, q.groups)), around_(q.timer.best()) {
  if (q.timer.best_seconds() < sched::kForever) unit_ = q.timer.best_seconds();
}

double AgentLearner::Reward(double seconds) const { return -std::min(std::sqrt(seconds / unit_), kWorst); }

sched::GraphStrategy AgentLearner::With(AgentDraw actions) const {
  return {std::move(actions), around_.bucket_bytes, sched::OrderBy::kRank};
}

double AgentLearner::TryMostLikely() { return q_.timer.Seconds(With(policy_.MostLikely(features_))); }

AgentRound AgentLearner::Round() {
  AgentRound round;
  const double best_before = q_.timer.best_seconds();
  std::vector<double> rewards;
  double mean = 0, squares = 0;
  std::vector<AgentDraw> best;  // so far, if it is known what fits
  if (!q_.timer.best().actions.empty()) best.push_back(q_.timer.best().actions);
  std::vector<AgentDraw> draws = policy_.Draw(features_, draws_, std::move(best));
  for (size_t i = 0; i < static_cast<size_t>(draws_); ++i) {
    const double seconds = q_.timer.Seconds(With(std::move(draws[i])));
    round.best_seconds = std::min(round.best_seconds, seconds);
    rewards.push_back(Reward(seconds));
    mean += rewards.back() / draws_;
  }
  for (const double reward : rewards) squares += (reward - mean) * (reward - mean);
  // Divided by their spread, which the paper does not say: questions of all sizes then count alike.
  const double spread = std::max(std::sqrt(squares / draws_), 1e-3);
  if (!known_) average_ = mean;
  // Nor that the best strategy so far is learned again in each round (Oh and others 2018, self-imitation): it is rare
  // among the draws.
  if (draws.size() > rewards.size()) rewards.push_back(Reward(best_before));
  std::vector<double> advantages;
  for (const double reward : rewards) advantages.push_back((reward - average_) / spread);
  average_ = kKeepAverage * average_ + (1 - kKeepAverage) * mean;
  known_ = true;
  policy_.Learn(advantages);
  round.mean_reward = mean;
  return round;
}

absl::Status SearchGraphByAgent(const sched::GraphQuestion& q, uint64_t seed, const AgentOptions& options) {
  AgentPolicy policy(options.settings, seed);
  if (!options.weights.empty()) MEDLEY_RETURN_IF_ERROR(policy.Load(options.weights));
  AgentLearner learner(policy, q, options.draws_a_round);
  learner.TryMostLikely();
  const auto polish = static_cast<int64_t>(options.polish * static_cast<double>(q.timer.left()));
  for (int without = 0; q.timer.left() > polish && !q.timer.Spent() && without < kRoundsWithoutNews;) {
    const int64_t before = q.timer.calls();
    learner.Round();
    policy.Step();
    without = q.timer.calls() == before ? without + 1 : 0;
  }
  learner.TryMostLikely();
  if (polish > 0) sched::SearchGraph(q);
  return absl::OkStatus();
}

std::string_view ShippedAgentWeights() { return medley_embedded_agent_weights()[0].bytes; }

std::vector<std::unique_ptr<sched::Planner>> MakeGraphAgentPlanners() {
  std::vector<std::unique_ptr<sched::Planner>> out;
  const auto add = [&](std::string_view name, std::string_view description, const sched::GraphOptions& options,
                       const AgentOptions& agent) {
    out.push_back(sched::MakeGraphPlanner(
        name, description, options,
        [agent](const sched::GraphQuestion& q) -> absl::Status {
          sched::TryBaselines(q);
          return SearchGraphByAgent(q, q.rng.Next(), agent);
        },
        true));
  };
  add("graph-agent",
      "devices, replicas and reductions of each group of operations, by trained networks (HeteroG), then local search",
      {}, {.settings = {}, .weights = ShippedAgentWeights()});
  add("graph-agent-paper",
      "the networks of graph-agent in the sizes of HeteroG, from random weights, without local search",
      {.groups = kPaperGroups}, {.settings = AgentSettings::Paper(), .polish = 0, .weights = {}});
  return out;
}

}  // namespace medley::reproductions::heterog
