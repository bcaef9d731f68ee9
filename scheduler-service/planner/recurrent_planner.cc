#include "scheduler-service/planner/recurrent_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/status.h"
#include "scheduler-service/options/option_table.h"
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

// planner.options; 0: computed in SettingsOf.
struct RecurrentOptions {
  int rounds = 0;
  int samples_per_round = 0;
  int hidden_units = 0;
  double learning_rate = 0.01;
  double baseline_decay = 0.1;
};

const OptionTable<RecurrentOptions>& RecurrentTable() {
  static const auto table =
      OptionTable<RecurrentOptions>()
          .Integer("rounds", &RecurrentOptions::rounds, 1, kMostRounds, "updates of the policy, of all starts together",
                   "300 a start")
          .Integer("samplesPerRound", &RecurrentOptions::samples_per_round, 1, kMostSamples,
                   "schedules that are drawn for one update", "the smaller of 64 and 16384 / layers")
          .Integer("hiddenUnits", &RecurrentOptions::hidden_units, 1, policy_net::kMaxHidden, "size of the network",
                   "32, or that of planner.policy")
          .Number("learningRate", &RecurrentOptions::learning_rate, 1e-6, 1, "step of the optimizer")
          .Number("baselineDecay", &RecurrentOptions::baseline_decay, 1e-6, 1,
                  "weight of a new reward in the moving average that rewards are compared with");
  return table;
}

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

absl::Status CheckPolicy(const model::PolicyOptions& o) {
  if (o.trained.empty() && !o.name.empty()) {
    return base::InvalidArgument("planner.policy.name: '{}': only the scheduling service knows policies by name",
                                 o.name);
  }
  if (o.trained.empty() && o.inference_only) {
    return base::InvalidArgument("planner.policy.inferenceOnly: also needs planner.policy.trained");
  }
  return absl::OkStatus();
}

absl::StatusOr<Settings> SettingsOf(const Problem& problem, const RecurrentOptions& o, bool trained, int hidden) {
  Settings s;
  s.starts = trained ? 1 : kStarts;
  s.rounds = Or(o.rounds / s.starts, o.rounds > 0 ? 1 : 300);
  s.hidden = hidden;
  const int fitting = static_cast<int>(std::max<int64_t>(4, kMostDecisions / problem.layers()));
  s.reinforce.samples_per_round = Or(o.samples_per_round, std::min(64, fitting));
  s.reinforce.learning_rate = o.learning_rate;
  s.reinforce.baseline_decay = o.baseline_decay;
  s.reinforce.entropy_bonus = trained ? kEntropyBonusTuning : kEntropyBonus;
  s.reinforce.entropy_decay = std::pow(kEntropyAtEnd, 1.0 / s.rounds);
  s.reinforce.advantage_clip = 10;
  s.reinforce.clip_norm = 1;
  const int64_t activations = int64_t{s.reinforce.samples_per_round} * problem.layers() * s.hidden;
  if (activations > kMostActivations) {
    return base::InvalidArgument("planner.options: samplesPerRound * layers * hiddenUnits must be at most {}, is {}",
                                 kMostActivations, activations);
  }
  return s;
}

std::string_view CellName(policy_net::CellKind cell) {
  return cell == policy_net::CellKind::kLstm ? "an LSTM network" : "an Elman network";
}

// Training and decoding for one request.
class PolicySearch {
 public:
  PolicySearch(const Problem& problem, const Budget& budget, policy_net::TrainedPolicy trained,
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

class RecurrentPlanner final : public StagePlanner {
 public:
  RecurrentPlanner(std::string_view name, std::string_view description, policy_net::CellKind cell)
      : name_(name), description_(description), cell_(cell) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  Options options() const override { return RecurrentTable().options(); }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    const model::PolicyOptions& policy = problem.request().planner.policy;
    MEDLEY_RETURN_IF_ERROR(CheckPolicy(policy));
    MEDLEY_ASSIGN_OR_RETURN(const RecurrentOptions options,
                            RecurrentTable().Read(name_, problem.request().planner.options));
    MEDLEY_ASSIGN_OR_RETURN(policy_net::TrainedPolicy trained, PolicyOf(problem, policy, options.hidden_units));
    const bool begun = !trained.parameters.empty();
    MEDLEY_ASSIGN_OR_RETURN(const Settings settings, SettingsOf(problem, options, begun, trained.shape.hidden));
    MEDLEY_ASSIGN_OR_RETURN(policy_net::PolicyInputs inputs, InputsOf(problem, trained));
    MEDLEY_ASSIGN_OR_RETURN(ActionMap map, MapActions(problem, trained));
    PolicySearch search(problem, budget, std::move(trained), std::move(inputs), std::move(map));
    for (const std::string& name : search.trained().actions) {
      if (name.size() <= policy_net::kMaxName || !policy.return_policy) continue;
      return base::InvalidArgument("planner.policy.returnPolicy: names of resources must have at most {} bytes",
                                   policy_net::kMaxName);
    }
    base::Rng rng(seed);
    Solution solution = policy.inference_only ? search.Infer() : search.Train(settings, rng);
    if (policy.return_policy) solution.policy = policy_net::ToBytes(search.trained());
    return solution;
  }

 private:
  // The policy in the request, or an untrained one. `hidden`: of the options, 0 where they do not say.
  absl::StatusOr<policy_net::TrainedPolicy> PolicyOf(const Problem& problem, const model::PolicyOptions& given,
                                                     int hidden) const {
    if (given.trained.empty()) return EmptyPolicy(problem, cell_, Or(hidden, 32));
    auto policy = policy_net::PolicyFromBytes(given.trained);
    if (!policy.ok()) return base::Annotate(policy.status(), "planner.policy.trained");
    if (policy->shape.cell != cell_) {
      return base::InvalidArgument("planner.policy.trained: does not fit: it is {}, planner {} has {}",
                                   CellName(policy->shape.cell), name_, CellName(cell_));
    }
    if (hidden > 0 && hidden != policy->shape.hidden) {
      return base::InvalidArgument("planner.options.hiddenUnits: is {}, the policy has {}", hidden,
                                   policy->shape.hidden);
    }
    return policy;
  }

  const std::string_view name_, description_;
  const policy_net::CellKind cell_;
};

}  // namespace

std::unique_ptr<StagePlanner> MakeRecurrentPlanner(std::string_view name, std::string_view description,
                                                   policy_net::CellKind cell) {
  return std::make_unique<RecurrentPlanner>(name, description, cell);
}

}  // namespace medley::sched
