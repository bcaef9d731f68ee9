#include "scheduler-service/online/online_learner.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/model/observation.h"
#include "common/model/resource.h"
#include "scheduler-service/online/policy_trainer.h"
#include "scheduler-service/policy_net/byte_stream.h"

namespace medley::sched {
namespace {

constexpr std::string_view kMagic = "MDLYLRN1";
constexpr std::string_view kOwn = "online";
constexpr size_t kMostLayers = 1024;
constexpr size_t kMostName = 1024;

PolicyTrainerOptions OptionsOf(const OnlineLearner::Options& o) {
  return {o.most_schedules, o.first_rounds, o.rounds, o.hidden_units};
}

// The type of each layer. FindRefusal has checked that the stages cover all layers, on types of the problem.
std::vector<int> ScheduleOf(const Problem& problem, const model::JobObservation& observation) {
  std::vector<int> schedule(static_cast<size_t>(problem.layers()), -1);
  for (const model::StageMeasurement& stage : observation.stages) {
    int type = 0;
    while (problem.type(type).name != stage.resource_type) ++type;
    for (int layer = stage.first_layer; layer <= stage.last_layer; ++layer) {
      schedule[static_cast<size_t>(layer)] = type;
    }
  }
  return schedule;
}

// USD per hour: the observed value if present, else the units at the request's prices.
double HourlyOf(const Problem& problem, const model::JobObservation& observation) {
  if (observation.usd_per_hour > 0) return observation.usd_per_hour;
  double hourly = observation.server_units * problem.server_price();
  for (const model::StageMeasurement& stage : observation.stages) {
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.type(t).name == stage.resource_type) hourly += stage.units * problem.price(t);
    }
  }
  return hourly;
}

std::string PrefixOf(std::string_view tenant) { return (tenant.empty() ? "" : base::HashHex(tenant)) + "@"; }

std::string_view TenantIn(std::string_view key) { return key.substr(0, key.find('@')); }

}  // namespace

OnlineLearner::OnlineLearner(const Options& options) : options_(options) {}
OnlineLearner::~OnlineLearner() = default;

std::string OnlineLearner::NameOf(const model::PlanRequest& request) {
  std::string shape;
  for (const model::Layer& layer : request.model.layers) {
    shape += fmt::format("{}\n{}\n{}\n{}\n", layer.kind, layer.input_bytes, layer.output_bytes, layer.weight_bytes);
  }
  return fmt::format("rl-lstm/{}/{}", request.model.name.substr(0, kMostName / 2), base::HashHex(shape));
}

std::unique_ptr<PolicyTrainer> OnlineLearner::NewTrainer(const Problem& problem) const {
  const model::PlanRequest& request = problem.request();
  auto trainer = std::make_unique<PolicyTrainer>(OptionsOf(options_), policy_net::CellKind::kLstm);
  if (!request.planner.policy.trained.empty()) {
    auto policy = policy_net::PolicyFromBytes(request.planner.policy.trained);
    if (policy.ok()) trainer->WarmStart(problem, std::move(*policy));
  }
  return trainer;
}

std::optional<OnlineLearner::Refusal> OnlineLearner::FindRefusal(const model::JobObservation& observation) {
  const model::PlanRequest& request = observation.request;
  if (const absl::Status valid = model::Validate(observation); !valid.ok()) return Refusal{"invalid", valid};
  if (request.model.layers.size() > kMostLayers) {
    return Refusal{"too_many_layers",
                   base::ResourceExhausted("model.layers: has {} layers, policies can be trained on at most {}",
                                           request.model.layers.size(), kMostLayers)};
  }
  if (request.resources.empty()) {
    return Refusal{"no_resources", base::InvalidArgument("request.resources: is empty; policies are trained on the "
                                                         "resources that the job may use, with prices and limits")};
  }
  for (size_t i = 0; i < request.resources.size(); ++i) {
    if (request.resources[i].price_per_unit_hour > 0) continue;
    return Refusal{"no_price", base::InvalidArgument("request.resources[{}].pricePerUnitHour: '{}' has no price", i,
                                                     request.resources[i].name)};
  }
  for (size_t i = 0; i < observation.stages.size(); ++i) {
    const std::string& type = observation.stages[i].resource_type;
    if (std::ranges::count(request.resources, type, &model::Resource::name) > 0) continue;
    return Refusal{"unknown_type",
                   base::InvalidArgument("stages[{}].resourceType: '{}' is not in request.resources", i, type)};
  }
  if (const absl::Status valid = model::Validate(request); !valid.ok()) {
    return Refusal{"invalid", base::Annotate(valid, "request")};
  }
  return std::nullopt;
}

absl::Status OnlineLearner::Observe(const model::JobObservation& observation, std::string_view tenant) {
  if (const auto refusal = FindRefusal(observation)) return refusal->status;
  auto problem = Problem::Compile(observation.request);
  if (!problem.ok()) return base::Annotate(problem.status(), "request");
  const std::vector<int> schedule = ScheduleOf(*problem, observation);
  const double log_cost = std::log(HourlyOf(*problem, observation) / 3600 / observation.throughput);
  if (!std::isfinite(log_cost))
    return base::InvalidArgument("usdPerHour: must be greater than 0, or the request must have prices");

  const std::string key = PrefixOf(tenant) + NameOf(observation.request);
  const base::MutexLock lock(learning_);
  auto& trainer = trainers_[key];
  if (trainer == nullptr) trainer = NewTrainer(*problem);
  const int64_t number = ++observations_;
  const absl::Status learned =
      trainer->Train(*problem, schedule, log_cost, number + static_cast<int64_t>(options_.seed << 32));
  if (!learned.ok()) {
    if (trainer->policy().parameters.empty()) trainers_.erase(key);
    return learned;
  }
  Publish(key, *trainer);
  if (trainers_.size() > options_.most_models) DropOldest();
  return absl::OkStatus();
}

void OnlineLearner::DropOldest() {
  std::map<std::string_view, size_t> counts;
  size_t most = 0;
  for (const auto& [key, trainer] : trainers_) most = std::max(most, ++counts[TenantIn(key)]);
  auto oldest = trainers_.end();
  for (auto it = trainers_.begin(); it != trainers_.end(); ++it) {
    if (counts[TenantIn(it->first)] < most) continue;
    if (oldest == trainers_.end() || it->second->observed() < oldest->second->observed()) oldest = it;
  }
  const base::MutexLock reading(reading_);
  published_.erase(oldest->first);
  trainers_.erase(oldest);
}

void OnlineLearner::Publish(const std::string& key, const PolicyTrainer& trainer) {
  Snapshot snapshot{policy_net::ToBytes(trainer.policy()), trainer.ToBytes()};
  const base::MutexLock lock(reading_);
  published_[key] = std::move(snapshot);
}

absl::StatusOr<std::string> OnlineLearner::Policy(std::string_view name, std::string_view tenant) const {
  {
    const base::MutexLock lock(reading_);
    const auto found = published_.find(PrefixOf(tenant) + std::string(name));
    if (found != published_.end()) return found->second.policy;
  }
  std::string names;
  for (const std::string& known : Names(tenant)) names += (names.empty() ? "" : ", ") + known;
  return base::NotFound("planner.policy.name: '{}' is unknown; known policies: {}", name,
                        names.empty() ? "none" : names);
}

absl::Status OnlineLearner::Resolve(model::PlanRequest& request, std::string_view tenant) const {
  model::PolicyOptions& options = request.planner.policy;
  if (options.name.empty() || !options.trained.empty()) return absl::OkStatus();
  const std::string name = options.name == kOwn ? NameOf(request) : options.name;
  MEDLEY_ASSIGN_OR_RETURN(options.trained, Policy(name, tenant));
  return absl::OkStatus();
}

void OnlineLearner::WarmStart(model::PlanRequest& request, std::string_view tenant) const {
  std::string bytes;
  {
    const base::MutexLock lock(reading_);
    const auto found = published_.find(PrefixOf(tenant) + NameOf(request));
    if (found == published_.end()) return;
    bytes = found->second.policy;
  }
  const auto policy = policy_net::PolicyFromBytes(bytes);
  if (!policy.ok()) return;
  const bool knows_all = std::ranges::all_of(request.resources, [&](const model::Resource& resource) {
    return std::ranges::count(policy->actions, resource.name) > 0;
  });
  if (knows_all) request.planner.policy.trained = std::move(bytes);
}

std::vector<std::string> OnlineLearner::Names(std::string_view tenant) const {
  const std::string prefix = PrefixOf(tenant);
  const base::MutexLock lock(reading_);
  std::vector<std::string> names;
  for (const auto& [key, snapshot] : published_) {
    if (key.starts_with(prefix)) names.push_back(key.substr(prefix.size()));
  }
  return names;
}

std::string OnlineLearner::Save() const {
  std::string out(kMagic);
  const base::MutexLock lock(reading_);
  policy_net::PutValue(out, static_cast<uint32_t>(published_.size()));
  for (const auto& [name, snapshot] : published_) {
    policy_net::PutValue(out, static_cast<uint32_t>(name.size()));
    out += name;
    policy_net::PutValue(out, static_cast<uint64_t>(snapshot.bytes.size()));
    out += snapshot.bytes;
  }
  policy_net::PutValue(out, base::Hash64(out));
  return out;
}

absl::Status OnlineLearner::Load(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + sizeof(uint64_t)) {
    return base::InvalidArgument("policies: {} bytes are not a file of saved policies", bytes.size());
  }
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  if (policy_net::ByteReader(bytes.substr(body.size())).Take<uint64_t>() != base::Hash64(body)) {
    return base::InvalidArgument("policies: the file is damaged: the checksum does not match");
  }
  policy_net::ByteReader in(body.substr(kMagic.size()));
  const auto count = in.Take<uint32_t>();
  if (count > options_.most_models) {
    return base::InvalidArgument("policies: the file has {}, at most {} are allowed", count, options_.most_models);
  }
  std::map<std::string, std::unique_ptr<PolicyTrainer>> trainers;
  int64_t latest = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = in.TakeString(in.Take<uint32_t>());
    const std::string key = name.find('@') < name.find('/') ? name : PrefixOf("") + name;
    auto trainer = PolicyTrainer::FromBytes(in.TakeString(in.Take<uint64_t>()), OptionsOf(options_));
    if (!trainer.ok()) return base::Annotate(trainer.status(), fmt::format("policies: '{}'", name));
    latest = std::max(latest, trainer->observed() & 0xffffffff);
    trainers[key] = std::make_unique<PolicyTrainer>(std::move(*trainer));
  }
  if (in.cut_short() || in.left() != 0)
    return base::InvalidArgument("policies: the file is truncated or has {} extra bytes", in.left());
  const base::MutexLock lock(learning_);
  trainers_ = std::move(trainers);
  observations_ = latest;
  {
    const base::MutexLock reading(reading_);
    published_.clear();
  }
  for (const auto& [key, trainer] : trainers_) Publish(key, *trainer);
  return absl::OkStatus();
}

}  // namespace medley::sched
