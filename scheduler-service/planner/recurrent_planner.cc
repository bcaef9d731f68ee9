#include "scheduler-service/planner/recurrent_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/status.h"
#include "scheduler-service/planner/policy_features.h"
#include "scheduler-service/planner/schedule_cost.h"
#include "scheduler-service/policy_net/reinforce.h"

namespace medley::sched {
namespace {

constexpr int kMostRounds = 1'000'000;
constexpr int kMostSamples = 4096;
constexpr int64_t kMostDecisions = 1 << 14;    // samples times layers per round, unless the request sets the samples
constexpr int64_t kMostActivations = 1 << 21;  // decisions times hidden units: 8 MiB for each of 7 activations
constexpr int kStarts = 3;                     // new policies that are trained; the best one is used
constexpr double kEntropyBonus = 1;            // in the first round
constexpr double kEntropyAtEnd = 0.0025;       // the bonus of the last round, relative to the first
constexpr double kEntropyBonusTuning = 0.1;    // in the first round, for a policy that was trained before
constexpr double kSwitches = 2;                // average number of type changes in a new policy's schedules
constexpr double kSettledEntropy = 0.01;       // nats per decision
constexpr int kPatience = 40;                  // rounds without improvement before training stops

struct Settings {
  int rounds = 0;  // per start
  int starts = 0;
  int hidden = 0;
  policy_net::ReinforceOptions reinforce;
};

template <typename T>
T Or(T value, T fallback) {
  return value > 0 ? value : fallback;
}

absl::Status CheckRange(double value, double least, double most, std::string_view field) {
  if (value >= least && value <= most) return absl::OkStatus();
  return base::InvalidArgument("planner.recurrent.{}: must be in [{}, {}], is {}", field, least, most, value);
}

absl::Status CheckOptions(const model::RecurrentOptions& o) {
  MEDLEY_RETURN_IF_ERROR(CheckRange(o.rounds, 0, kMostRounds, "rounds"));
  MEDLEY_RETURN_IF_ERROR(CheckRange(o.samples_per_round, 0, kMostSamples, "samplesPerRound"));
  MEDLEY_RETURN_IF_ERROR(CheckRange(o.hidden_units, 0, policy_net::kMaxHidden, "hiddenUnits"));
  MEDLEY_RETURN_IF_ERROR(CheckRange(o.learning_rate, 0, 1, "learningRate"));
  MEDLEY_RETURN_IF_ERROR(CheckRange(o.baseline_decay, 0, 1, "baselineDecay"));
  if (o.policy.empty() && !o.policy_name.empty()) {
    return base::InvalidArgument(
        "planner.recurrent.policyName: '{}': only the scheduling service knows policies by name", o.policy_name);
  }
  if (o.policy.empty() && o.inference_only) {
    return base::InvalidArgument("planner.recurrent.inferenceOnly: also needs planner.recurrent.policy");
  }
  return absl::OkStatus();
}

absl::StatusOr<Settings> SettingsOf(const Problem& problem, bool trained, int hidden) {
  const model::RecurrentOptions& o = problem.request().planner.recurrent;
  Settings s;
  s.starts = trained ? 1 : kStarts;
  s.rounds = Or(o.rounds / s.starts, o.rounds > 0 ? 1 : 300);
  s.hidden = hidden;
  const int fitting = static_cast<int>(std::max<int64_t>(4, kMostDecisions / problem.layers()));
  s.reinforce.samples_per_round = Or(o.samples_per_round, std::min(64, fitting));
  s.reinforce.learning_rate = Or(o.learning_rate, 0.01);
  s.reinforce.baseline_decay = Or(o.baseline_decay, 0.1);
  s.reinforce.entropy_bonus = trained ? kEntropyBonusTuning : kEntropyBonus;
  s.reinforce.entropy_decay = std::pow(kEntropyAtEnd, 1.0 / s.rounds);
  s.reinforce.advantage_clip = 10;
  s.reinforce.clip_norm = 1;
  const int64_t activations = int64_t{s.reinforce.samples_per_round} * problem.layers() * s.hidden;
  if (activations > kMostActivations) {
    return base::InvalidArgument("planner.recurrent: samplesPerRound * layers * hiddenUnits must be at most {}, is {}",
                                 kMostActivations, activations);
  }
  return s;
}

// Training and decoding for one request.
class Search {
 public:
  Search(const Problem& problem, const Budget& budget, policy_net::TrainedPolicy trained,
         policy_net::PolicyInputs inputs, ActionMap map)
      : problem_(problem),
        budget_(budget),
        trained_(std::move(trained)),
        inputs_(std::move(inputs)),
        map_(std::move(map)),
        cost_(problem, &budget) {}

  // Evaluates the most probable schedule of the given policy, without training.
  Solution Infer() {
    const policy_net::RecurrentPolicy<float> policy(trained_.shape, trained_.parameters);
    CostOf(policy.Greedy(inputs_));
    Solution solution;
    solution.best = cost_.best();
    return solution;
  }

  Solution Train(const Settings& settings, base::Rng& rng) {
    Solution solution;
    const bool fresh = trained_.parameters.empty();
    std::vector<float> best_parameters;
    double best = std::numeric_limits<double>::infinity();
    for (int start = 0; start < settings.starts && solution.complete; ++start) {
      policy_net::RecurrentPolicy<float> policy =
          fresh ? policy_net::RecurrentPolicy<float>(trained_.shape, Persistence(), rng)
                : policy_net::RecurrentPolicy<float>(trained_.shape, trained_.parameters);
      const double reached = TrainOne(settings, policy, rng, solution.complete);
      if (!best_parameters.empty() && reached >= best) continue;
      best = reached;
      best_parameters = policy.parameters();
    }
    trained_.parameters = std::move(best_parameters);
    trained_.updates += updates_;
    solution.best = cost_.best();
    return solution;
  }

  const policy_net::TrainedPolicy& trained() const { return trained_; }

 private:
  double CostOf(std::span<const int> actions) {
    schedule_.clear();
    for (const int action : actions) schedule_.push_back(map_.type_of[static_cast<size_t>(action)]);
    return cost_.Of(schedule_);
  }

  double Persistence() const { return std::max(0.5, 1 - kSwitches / problem_.layers()); }

  // Trains one policy. Returns the least cost that was drawn. Sets `complete` to false if the budget ends the training.
  double TrainOne(const Settings& settings, policy_net::RecurrentPolicy<float>& policy, base::Rng& rng,
                  bool& complete) {
    policy_net::Reinforce reinforce(policy, inputs_, settings.reinforce);
    const policy_net::SequenceCost cost = [this](std::span<const int> actions) { return CostOf(actions); };
    double least = std::numeric_limits<double>::infinity();
    int improved = 0;
    for (int round = 0; round < settings.rounds; ++round) {
      if (budget_.Spent()) {
        complete = false;
        break;
      }
      const policy_net::RoundResult result = reinforce.Round(cost, rng);
      ++updates_;
      if (result.least_cost < least) {
        least = result.least_cost;
        improved = round;
      }
      if (result.entropy < kSettledEntropy && round - improved >= kPatience) break;
    }
    return std::min(least, CostOf(policy.Greedy(inputs_)));
  }

  const Problem& problem_;
  const Budget& budget_;
  policy_net::TrainedPolicy trained_;
  const policy_net::PolicyInputs inputs_;
  const ActionMap map_;
  ScheduleCost cost_;
  std::vector<int> schedule_;
  int64_t updates_ = 0;
};

class RecurrentPlanner final : public Planner {
 public:
  RecurrentPlanner(std::string_view name, std::string_view description, policy_net::CellKind cell)
      : name_(name), description_(description), cell_(cell) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }

  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    const model::RecurrentOptions& options = problem.request().planner.recurrent;
    MEDLEY_RETURN_IF_ERROR(CheckOptions(options));
    MEDLEY_ASSIGN_OR_RETURN(policy_net::TrainedPolicy trained, PolicyOf(problem, options));
    const bool begun = !trained.parameters.empty();
    MEDLEY_ASSIGN_OR_RETURN(const Settings settings, SettingsOf(problem, begun, trained.shape.hidden));
    MEDLEY_ASSIGN_OR_RETURN(policy_net::PolicyInputs inputs, InputsOf(problem, trained));
    MEDLEY_ASSIGN_OR_RETURN(ActionMap map, MapActions(problem, trained));
    Search search(problem, budget, std::move(trained), std::move(inputs), std::move(map));
    for (const std::string& name : search.trained().actions) {
      if (name.size() <= policy_net::kMaxName || !options.return_policy) continue;
      return base::InvalidArgument("planner.recurrent.returnPolicy: names of resources must have at most {} bytes",
                                   policy_net::kMaxName);
    }
    base::Rng rng(seed);
    Solution solution = options.inference_only ? search.Infer() : search.Train(settings, rng);
    if (options.return_policy) solution.policy = policy_net::ToBytes(search.trained());
    return solution;
  }

 private:
  // The policy in the request, or an untrained one.
  absl::StatusOr<policy_net::TrainedPolicy> PolicyOf(const Problem& problem,
                                                     const model::RecurrentOptions& options) const {
    if (options.policy.empty()) return EmptyPolicy(problem, cell_, Or(options.hidden_units, 32));
    auto policy = policy_net::PolicyFromBytes(options.policy);
    if (!policy.ok()) return base::Annotate(policy.status(), "planner.recurrent.policy");
    if (policy->shape.cell != cell_) {
      return base::InvalidArgument("planner.recurrent.policy: does not fit: it belongs to planner {}, not {}",
                                   cell_ == policy_net::CellKind::kLstm ? "rl-rnn" : "rl-lstm", name_);
    }
    if (options.hidden_units > 0 && options.hidden_units != policy->shape.hidden) {
      return base::InvalidArgument("planner.recurrent.hiddenUnits: is {}, the policy has {}", options.hidden_units,
                                   policy->shape.hidden);
    }
    return policy;
  }

  const std::string_view name_, description_;
  const policy_net::CellKind cell_;
};

}  // namespace

std::unique_ptr<Planner> MakeRecurrentPlanner(std::string_view name, std::string_view description,
                                              policy_net::CellKind cell) {
  return std::make_unique<RecurrentPlanner>(name, description, cell);
}

}  // namespace medley::sched
