#include "scheduler-service/handlers/learned_state_store.h"

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/observation.h"
#include "common/model/prediction.h"

namespace medley::sched {
namespace {

constexpr char kCalibration[] = "calibration";
constexpr char kOnline[] = "online-policies";
constexpr base::seconds kPeriod{5};
constexpr char kRecurrent[] = "rl-lstm";  // the planner of the policies

}  // namespace

struct LearnedStateStore::Pending {
  model::JobObservation observation;
  std::string tenant;
};

LearnedStateStore::LearnedStateStore(const std::filesystem::path& folder, bool online, metrics::Registry& metrics)
    : files_(folder, metrics),
      metrics_(metrics),
      policies_(folder.empty() ? folder : folder / "policies"),
      learner_(online ? std::make_unique<OnlineLearner>(OnlineLearner::Options{}) : nullptr) {
  for (const char* result : {"trained", "rejected", "dropped"}) TrainingCounter(result);
  for (const std::string_view reason : OnlineLearner::kRefusals) RejectionCounter(std::string(reason));
  ErrorHistogram();
  ModelGauge().Set(0);
}

LearnedStateStore::~LearnedStateStore() = default;

metrics::Counter& LearnedStateStore::TrainingCounter(const std::string& result) {
  return metrics_.GetCounter("medley_policy_training_observations_total",
                             "Observations for the training of policies, by result", {{"result", result}});
}

metrics::Counter& LearnedStateStore::RejectionCounter(const std::string& reason) {
  return metrics_.GetCounter("medley_policy_training_rejections_total",
                             "Observations that trained no policy, by reason", {{"reason", reason}});
}

void LearnedStateStore::CountRejection(const std::string& reason, const absl::Status& status) {
  TrainingCounter("rejected").Increment();
  RejectionCounter(reason).Increment();
  bool first = false;
  {
    const base::MutexLock lock(mutex_);
    first = warned_.insert(reason).second;
  }
  const auto write = first ? base::log::Warn : base::log::Debug;
  write("an observation trains no policy", {{"reason", reason}, {"error", base::ToString(status)}});
}

metrics::Histogram& LearnedStateStore::ErrorHistogram() {
  return metrics_.GetHistogram("medley_prediction_error_ratio",
                               "Relative difference between corrected predictions and measurements of jobs",
                               {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1});
}

metrics::Gauge& LearnedStateStore::ModelGauge() {
  return metrics_.GetGauge("medley_calibrated_models", "Models with observations that correct their profiles");
}

absl::Status LearnedStateStore::Open() {
  MEDLEY_RETURN_IF_ERROR(files_.Open());
  policies_.Scan();
  const auto read = [this](const char* name, auto& into) {
    const auto bytes = files_.Load(name);
    if (!bytes) return;
    const absl::Status status = into.Load(*bytes);
    if (!status.ok()) files_.Damaged(name, status);
    if (status.ok())
      base::log::Info("restored learned state", {{"file", name}, {"bytes", std::to_string(bytes->size())}});
  };
  read(kCalibration, calibrator_);
  if (learner_ != nullptr) read(kOnline, *learner_);
  return absl::OkStatus();
}

void LearnedStateStore::Run(base::Clock& clock, std::stop_token stop) {
  base::SteadyTime next = clock.Steady() + kPeriod;
  while (!stop.stop_requested()) {
    TrainPolicies(stop);
    if (clock.Steady() < next) continue;
    next = clock.Steady() + kPeriod;
    policies_.Scan();
    Save();
  }
}

void LearnedStateStore::TrainPolicies(std::stop_token stop) {
  std::unique_ptr<const Pending> next;
  {
    base::MutexLock lock(mutex_);
    const bool ready = pending_changed_.WaitFor(mutex_, stop, base::seconds(1), [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return !pending_observations_.empty();
    });
    if (!ready) return;
    next = std::move(pending_observations_.front());
    pending_observations_.pop_front();
  }
  const absl::Status status = learner_->Observe(next->observation, next->tenant);
  if (!status.ok()) return CountRejection("invalid", status);
  TrainingCounter("trained").Increment();
  ++trained_;
}

absl::Status LearnedStateStore::ResolvePolicy(model::PlanRequest& request, std::string_view tenant) const {
  model::PolicyOptions& policy_options = request.planner.policy;
  const bool own = request.planner.name == kRecurrent && request.planner.options.empty();
  if (learner_ != nullptr && own && policy_options.name.empty() && policy_options.trained.empty()) {
    learner_->WarmStart(request, tenant);
    return absl::OkStatus();
  }
  if (policy_options.name.empty() || !policy_options.trained.empty()) return absl::OkStatus();
  if (const PolicyStore::Policy policy = policies_.Find(policy_options.name)) {
    policy_options.trained = *policy;
    return absl::OkStatus();
  }
  const absl::Status online =
      learner_ == nullptr ? base::NotFound("disabled (--learn-online is not set)") : learner_->Resolve(request, tenant);
  if (online.ok()) return online;
  return base::InvalidArgument("planner.policy.name: '{}' is unknown; policy files: {}; online policies: {}",
                               policy_options.name, policies_.Names(), base::Message(online));
}

void LearnedStateStore::Save() {
  const uint64_t trained = trained_.load();
  if (learner_ != nullptr && trained_saved_.exchange(trained) != trained) files_.Save(kOnline, learner_->Save());
  const uint64_t observed = observed_.load();
  if (saved_.exchange(observed) == observed) return;
  files_.Save(kCalibration, calibrator_.Save());
}

absl::StatusOr<LearnedStateStore::Learned> LearnedStateStore::Observe(const model::JobObservation& observation,
                                                                      std::string_view tenant) {
  Learned learned;
  MEDLEY_ASSIGN_OR_RETURN(learned.prediction, calibrator_.Observe(observation, tenant));
  ++observed_;
  ErrorHistogram().Observe(learned.prediction.relative_error);
  ModelGauge().Set(calibrator_.models());
  if (learner_ == nullptr) {
    learned.refusal = "disabled";
    learned.message = "the service trains no policies: --learn-online is not set";
    return learned;
  }
  if (const auto refusal = OnlineLearner::FindRefusal(observation)) {
    CountRejection(refusal->reason, refusal->status);
    learned.refusal = refusal->reason;
    learned.message = base::Message(refusal->status);
    return learned;
  }
  const base::MutexLock lock(mutex_);
  pending_observations_.push_back(std::make_unique<const Pending>(Pending{observation, std::string(tenant)}));
  if (pending_observations_.size() > kMaxPendingObservations) {
    pending_observations_.pop_front();
    TrainingCounter("dropped").Increment();
  }
  pending_changed_.NotifyOne();
  return learned;
}

}  // namespace medley::sched
