#include "scheduler-service/online/policy_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "scheduler-service/planner/policy_features.h"
#include "scheduler-service/planner/schedule_cost.h"
#include "scheduler-service/policy_net/byte_stream.h"
#include "scheduler-service/policy_net/reinforce.h"

namespace medley::sched {
namespace {

constexpr std::string_view kPolicyMagic = "MDLYTRN1";
constexpr double kRidge = 0.05;
constexpr double kMostImportance = 2;  // bounds of the importance ratio
constexpr double kLeastImportance = 0.2;
constexpr int64_t kDecisions = 1 << 11;  // samples times layers per round
constexpr double kReplayRate = 0.003;

policy_net::ReinforceOptions RoundOptions(const Problem& problem, bool first, int rounds) {
  policy_net::ReinforceOptions o;
  o.samples_per_round = static_cast<int>(std::clamp<int64_t>(kDecisions / problem.layers(), 4, 48));
  o.learning_rate = 0.01;
  o.baseline_decay = 0.1;
  o.entropy_bonus = first ? 1 : 0.1;  // keep exploring, because measured costs change
  o.entropy_decay = std::pow(first ? 0.01 : 0.5, 1.0 / std::max(rounds, 1));
  o.advantage_clip = 10;
  o.clip_norm = 1;
  return o;
}

// The gradient steps of one observation.
class TrainingRun {
 public:
  TrainingRun(const Problem& problem, const policy_net::PolicyInputs& inputs, const ActionMap& map,
              const ReplayBuffer& measured, policy_net::RecurrentPolicy<float>& policy)
      : problem_(problem),
        inputs_(inputs),
        map_(map),
        replay_buffer_(measured),
        policy_(policy),
        cost_(problem),
        replay_adam_(policy.parameters().size(), {.learning_rate = kReplayRate, .clip_norm = 1}) {
    FitCorrection();
  }

  void Run(int rounds, bool first, base::Rng& rng) {
    policy_net::Reinforce reinforce(policy_, inputs_, RoundOptions(problem_, first, rounds));
    const policy_net::SequenceCost cost = [this](std::span<const int> actions) {
      return EstimatedLogCost({actions.begin(), actions.end()});
    };
    for (int round = 0; round < rounds; ++round) {
      reinforce.Round(cost, rng);
      Replay();
    }
  }

 private:
  // Converts actions to types of the problem. Empty if the problem lacks a type or a layer has no profile on its type.
  std::vector<int> Types(const std::vector<int>& actions) const {
    std::vector<int> schedule;
    for (size_t i = 0; i < actions.size(); ++i) {
      const int t = map_.type_of[static_cast<size_t>(actions[i])];
      if (t < 0 || !problem_.Profiled(static_cast<int>(i), t)) return {};
      schedule.push_back(t);
    }
    return schedule;
  }

  double ModelledLogCost(const std::vector<int>& schedule) {
    return cost_.Of(schedule) - std::log(problem_.total_samples());
  }

  void FitCorrection() {
    std::vector<std::vector<double>> shares;
    std::vector<double> ratios;
    for (const MeasuredSchedule& m : replay_buffer_.all()) {
      const std::vector<int> schedule = Types(m.schedule);
      if (schedule.empty()) continue;
      shares.push_back(SharesByType(problem_, schedule));
      ratios.push_back(m.log_cost - ModelledLogCost(schedule));
    }
    correction_ = RidgeWeights(shares, ratios, kRidge);
    correction_.resize(static_cast<size_t>(problem_.types()));
  }

  // Natural logarithm of USD per sample: measured, or modelled and corrected.
  double EstimatedLogCost(const std::vector<int>& actions) {
    if (const MeasuredSchedule* m = replay_buffer_.Find(actions)) return m->log_cost;
    const std::vector<int> schedule = Types(actions);
    const std::vector<double> shares = SharesByType(problem_, schedule);
    double value = ModelledLogCost(schedule);
    for (size_t t = 0; t < shares.size(); ++t) value += shares[t] * correction_[t];
    return value;
  }

  void Replay() {
    std::vector<int> actions;
    std::vector<const MeasuredSchedule*> kept;
    double mean = 0;
    for (const MeasuredSchedule& m : replay_buffer_.all()) {
      if (!IsAllowed(m.schedule)) continue;
      kept.push_back(&m);
      actions.insert(actions.end(), m.schedule.begin(), m.schedule.end());
      mean += m.log_cost;
    }
    if (kept.size() < 2) return;
    const double n = static_cast<double>(kept.size());
    mean /= n;
    double variance = 0;
    for (const MeasuredSchedule* m : kept) variance += (m->log_cost - mean) * (m->log_cost - mean) / n;
    policy_.Follow(inputs_, actions, rollout_);
    std::vector<float> weights;
    for (size_t i = 0; i < kept.size(); ++i) {
      const double ratio = std::exp(std::min(rollout_.log_probability[i] - kept[i]->log_probability, 10.0));
      const double importance = std::clamp(ratio, kLeastImportance, kMostImportance);
      const double advantage = (mean - kept[i]->log_cost) / (std::sqrt(variance) + 1e-3);
      weights.push_back(static_cast<float>(importance * advantage / n));
    }
    gradient_.assign(policy_.parameters().size(), 0);
    policy_.AddGradient(inputs_, rollout_, weights, 0, gradient_);
    replay_adam_.Climb(gradient_, policy_.parameters());
  }

  bool IsAllowed(const std::vector<int>& actions) const {
    for (size_t i = 0; i < actions.size(); ++i) {
      if (inputs_.allowed[i * map_.type_of.size() + static_cast<size_t>(actions[i])] == 0) return false;
    }
    return true;
  }

  const Problem& problem_;
  const policy_net::PolicyInputs& inputs_;
  const ActionMap& map_;
  const ReplayBuffer& replay_buffer_;
  policy_net::RecurrentPolicy<float>& policy_;
  ScheduleCost cost_;
  policy_net::Adam<float> replay_adam_;
  policy_net::Rollout<float> rollout_;
  std::vector<float> gradient_;
  std::vector<double> correction_;  // by type of the problem
};

}  // namespace

void PolicyTrainer::WarmStart(const Problem& problem, policy_net::TrainedPolicy policy) {
  if (!policy_.actions.empty() || policy.shape.cell != cell_ || !InputsOf(problem, policy).ok()) return;
  policy_ = std::move(policy);
}

void PolicyTrainer::AddNewTypes(const Problem& problem) {
  std::vector<std::string> names = policy_.actions;
  for (int t = 0; t < problem.types(); ++t) {
    if (std::find(names.begin(), names.end(), problem.type(t).name) == names.end()) {
      names.push_back(problem.type(t).name);
    }
  }
  if (names.size() == policy_.actions.size()) return;
  if (names.size() > policy_net::kMaxActions) {  // start over with the current types only
    names.clear();
    replay_buffer_.set_all({});
    for (int t = 0; t < problem.types(); ++t) names.push_back(problem.type(t).name);
  }
  const auto actions = static_cast<int>(names.size());
  policy_net::TrainedPolicy fresh = EmptyPolicy(problem, cell_, options_.hidden_units);
  fresh.shape.features += actions - fresh.shape.actions;
  fresh.shape.actions = actions;
  fresh.actions = std::move(names);
  policy_ = std::move(fresh);
}

absl::Status PolicyTrainer::Train(const Problem& problem, const std::vector<int>& schedule, double log_cost,
                                  int64_t number) {
  AddNewTypes(problem);
  if (!replay_buffer_.all().empty() && replay_buffer_.all()[0].schedule.size() != schedule.size())
    replay_buffer_.set_all({});
  MEDLEY_ASSIGN_OR_RETURN(const policy_net::PolicyInputs inputs, InputsOf(problem, policy_));
  MEDLEY_ASSIGN_OR_RETURN(const ActionMap map, MapActions(problem, policy_));
  base::Rng rng(base::Mix64(static_cast<uint64_t>(number)));
  const bool first = policy_.parameters.empty();
  policy_net::RecurrentPolicy<float> policy =
      first ? policy_net::RecurrentPolicy<float>(policy_.shape, std::max(0.5, 1 - 2.0 / problem.layers()), rng)
            : policy_net::RecurrentPolicy<float>(policy_.shape, policy_.parameters);
  std::vector<int> actions;
  for (const int t : schedule) actions.push_back(map.action_of[static_cast<size_t>(t)]);
  policy_net::Rollout<float> rollout;
  policy.Follow(inputs, actions, rollout);
  replay_buffer_.Add(actions, log_cost, rollout.log_probability[0], number);
  const int rounds = first ? options_.first_rounds : options_.rounds;
  TrainingRun(problem, inputs, map, replay_buffer_, policy).Run(rounds, first, rng);
  policy_.parameters = policy.parameters();
  policy_.updates += rounds;
  observed_ = number;
  return absl::OkStatus();
}

std::string PolicyTrainer::ToBytes() const {
  std::string out(kPolicyMagic);
  const std::string policy = policy_net::ToBytes(policy_);
  policy_net::PutValue(out, static_cast<uint64_t>(policy.size()));
  out += policy;
  policy_net::PutValue(out, observed_);
  policy_net::PutValue(out, static_cast<uint32_t>(replay_buffer_.all().size()));
  for (const MeasuredSchedule& m : replay_buffer_.all()) {
    policy_net::PutValue(out, static_cast<uint32_t>(m.schedule.size()));
    for (const int action : m.schedule) policy_net::PutValue(out, static_cast<uint8_t>(action));
    policy_net::PutValue(out, m.log_cost);
    policy_net::PutValue(out, m.log_probability);
    policy_net::PutValue(out, m.observed);
  }
  policy_net::PutValue(out, base::Hash64(out));
  return out;
}

absl::StatusOr<PolicyTrainer> PolicyTrainer::FromBytes(std::string_view bytes, const PolicyTrainerOptions& options) {
  if (!bytes.starts_with(kPolicyMagic) || bytes.size() < kPolicyMagic.size() + sizeof(uint64_t)) {
    return base::InvalidArgument("policy trainer: {} bytes are not a saved policy with its measurements", bytes.size());
  }
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  if (policy_net::ByteReader(bytes.substr(body.size())).Take<uint64_t>() != base::Hash64(body)) {
    return base::InvalidArgument("policy trainer: the data is damaged: the checksum does not match");
  }
  policy_net::ByteReader in(body.substr(kPolicyMagic.size()));
  MEDLEY_ASSIGN_OR_RETURN(policy_net::TrainedPolicy policy,
                          policy_net::PolicyFromBytes(in.TakeString(in.Take<uint64_t>())));
  PolicyTrainer trainer(options, policy.shape.cell);
  const int actions = policy.shape.actions;
  trainer.policy_ = std::move(policy);
  trainer.observed_ = in.Take<int64_t>();
  const auto count = in.Take<uint32_t>();
  std::vector<MeasuredSchedule> all;
  for (uint32_t i = 0; i < count && !in.cut_short(); ++i) {
    MeasuredSchedule m;
    const std::string schedule = in.TakeString(in.Take<uint32_t>());
    for (const char c : schedule) m.schedule.push_back(static_cast<uint8_t>(c));
    m.log_cost = in.Take<double>();
    m.log_probability = in.Take<double>();
    m.observed = in.Take<int64_t>();
    const bool known = std::all_of(m.schedule.begin(), m.schedule.end(), [&](int a) { return a < actions; });
    if (!known || m.schedule.size() != (all.empty() ? m.schedule.size() : all[0].schedule.size()) ||
        !std::isfinite(m.log_cost) || !std::isfinite(m.log_probability)) {
      return base::InvalidArgument("policy trainer: measurement {} is invalid", i);
    }
    all.push_back(std::move(m));
  }
  if (in.cut_short() || in.left() != 0 || all.size() > options.most_schedules) {
    return base::InvalidArgument("policy trainer: invalid size: {} measurements and {} extra bytes", count, in.left());
  }
  trainer.replay_buffer_.set_all(std::move(all));
  return trainer;
}

}  // namespace medley::sched
