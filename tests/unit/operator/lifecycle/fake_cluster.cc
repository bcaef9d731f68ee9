#include "tests/unit/operator/lifecycle/fake_cluster.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/pod.h"
#include "kube/schema/validate.h"
#include "localcluster/apiserver/builtin_schemas.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "operator/capacity/trim.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/planning/pool_prices.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;

constexpr int kMostPlans = 1000;                               // that a cluster asks for before it rests
constexpr base::nanoseconds kLongestWait = base::seconds(30);  // between two passes of Settle
constexpr char kNamespace[] = "ml";

std::string ZoneOf(const std::string& node) { return "z" + node; }

// The zone that required node affinity pins the pod to; empty: none.
std::string PinOf(const kube::Object& pod) {
  const Json& zone = pod.At(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
      "matchExpressions/0/values/0");
  return zone.is_string() ? zone.get<std::string>() : "";
}

// What an API server finds wrong with the types of a pod's fields.
absl::Status CheckPod(const kube::Object& pod) {
  static const kube::Definitions definitions = localcluster::apiserver::BuiltinDefinitions();
  kube::FieldErrors errors;
  kube::ValidateSchema(pod.json(), definitions.Find("io.k8s.api.core.v1.Pod"), nullptr, "", &errors);
  if (errors.empty()) return absl::OkStatus();
  return base::InvalidArgument("Pod \"{}\" is invalid: {}: {}", pod.key().name, errors[0].field, errors[0].what);
}

}  // namespace

AskForPlan::Outcome FakeCluster::FirstPoolWithRoom(const model::PlanRequest& request) {
  for (const model::Resource& resource : request.resources) {
    if (resource.limit < kUnits) continue;
    model::PlanResult result;
    model::ExecutionPlan plan;
    plan.stages = {{{{0, 1}}, {{resource.name, kUnits, 1}}, {{{{0, 1}}, {.kind = model::SyncKind::kAllreduce}}}}};
    plan.schedule.micro_batches = 4;
    plan.estimate.throughput = 1000;
    plan.estimate.usd_total = plan.estimate.usd_per_hour = kUnits * resource.price_per_unit_hour;
    plan.provenance.planner = "fake";
    model::ProvisionedPlan provisioned;
    provisioned.stages = {{0, 0, resource.name, kUnits, 1000, 0, 0}};
    provisioned.throughput = 1000;
    provisioned.cost_usd = provisioned.cost_per_hour = plan.estimate.usd_per_hour;
    result.plan = provisioned;
    result.execution_plan = plan;
    return {result, false};
  }
  model::PlanResult none;
  none.reasons = {{"limit", request.resources.front().name, kUnits, 0, ""}};
  return {none, false};
}

FakeCluster::FakeCluster() {
  job = Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "adult", "uid": "job-1", "generation": 1, "resourceVersion": "1"},
    "spec": {"model": {"name": "ctrdnn"}, "training": {"epochs": 1},
             "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                      "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]}}}})");
  job["metadata"]["namespace"] = kNamespace;
  pools = {{"a", {}}, {"b", {}}, {"c", {}}};
}

FakeCluster FakeCluster::Training() {
  static const FakeCluster kTraining = [] {
    FakeCluster cluster;
    MEDLEY_CHECK(cluster.RunUntilTraining(), cluster.trace());
    return cluster;
  }();
  return kTraining;
}

base::WallTime FakeCluster::now() const {
  return base::WallTime(base::seconds(1'700'000'000)) + std::chrono::duration_cast<base::WallTime::duration>(elapsed_);
}

void FakeCluster::SetSpec(const Json& merge_patch) {
  kube::MergePatch(job["spec"], merge_patch);
  job["metadata"]["generation"] = job["metadata"]["generation"].get<int>() + 1;
}

Observation& FakeCluster::coordinator() {
  MEDLEY_CHECK(coordinator_, "the coordinator does not run");
  return coordinator_->observation;
}

std::string FakeCluster::SecretName() const {
  return NameOfSecret("adult", {"derived with " + operator_keys.front(), "", ""});
}

void FakeCluster::RestartOperator() {
  memory_ = Memory();
  for (const auto& [name, pool] : pools) outages_.Forget(name);
  connection_.reset();
  heard_.reset();
  profile_memories_.clear();
  open_profiles_.clear();
  reserved_.clear();
  in_line_ = false;
  calls_.clear();
  trace_.push_back("--- the operator restarts");
}

kube::ObjectPtr FakeCluster::Cached(const std::string& id, const Json& json) const {
  CachedObject& cached = cache_[id];
  if (cached.object == nullptr || cached.json != json) {
    kube::Object object(json);
    if (id.starts_with("Pod/")) TrimPod(object);  // as the operator's informers do
    cached = {json, std::make_shared<const kube::Object>(std::move(object))};
  }
  return cached.object;
}

World FakeCluster::Observe() const {
  World world;
  world.now = now();
  world.steady = base::SteadyTime(base::seconds(1000) + elapsed_);
  world.leader_term = leader_term;
  for (const auto& [name, object] : pods_) {
    if (!object.controller() || object.controller()->uid != "job-1") continue;
    if (copies.contains(object.uid())) {
      world.copies.push_back(std::make_shared<const kube::Object>(object));
      continue;
    }
    PaidPod& paid = world.paid_pods[object.uid()];
    paid.created = base::ParseTime(object.String("/metadata/creationTimestamp")).value_or(now());
    if (kube::HasEnded(object)) paid.ended = paid.created;
    const auto pool = pools.find(object.label(kPoolLabel));
    if (pool != pools.end()) paid.usd_per_hour = pool->second.price.value_or(0);
    paid.pool = object.label(kPoolLabel);
    paid.held = pool != pools.end();
    if (!object.String("/spec/nodeName").empty()) paid.node_at = paid.created;
    if (object.label(kRoleLabel) == "profiler") continue;
    world.pods[name] = Cached("Pod/" + name, object.json());
    const std::string node = object.String("/spec/nodeName");
    if (noticed_nodes.contains(node)) world.node_notices[node] = Notice{Notice::Kind::kSpot, true, "taint spot"};
    if (nodes_not_ready.contains(node)) world.nodes_not_ready.insert(node);
  }
  world.prices_are_known = catalog_revision.has_value();
  world.pods_are_current = cache_is_current;
  world.quota_changes = quota_changes;
  for (const char* id :
       {"Service/adult-coordinator", "NetworkPolicy/adult", "PodDisruptionBudget/adult", "ConfigMap/adult-spec"}) {
    const auto found = objects_.find(id);
    if (found == objects_.end()) continue;
    world.objects[found->second["kind"]] = Cached(id, found->second);
  }
  const Json* plan = FindObject("ConfigMap", "adult-plan");
  if (plan != nullptr && memory_.stored_plan.record) world.stored_plan = Cached("ConfigMap/adult-plan", *plan);
  world.connection = connection_;
  if (connection_) world.observed = Talks() ? std::make_shared<const Observation>(coordinator_->observation) : heard_;
  world.stored_status = job.value("status", Json());
  for (const std::string& key : operator_keys) world.credentials.push_back({"derived with " + key, "", ""});
  return world;
}

struct FakeCluster::Hand {
  FakeCluster& cluster;

  Answer operator()(const ReadPools& action) const {
    PoolsView view;
    const base::WallTime now = cluster.now();
    view.catalog_revision = cluster.catalog_revision;
    for (const auto& [name, pool] : cluster.pools) {
      const std::optional<ResourcePool> valid = cluster.ValidPool(name);
      if (!valid) continue;
      PoolView one{*valid, pool.price, cluster.FreeUnits(name, ""), "nodes of " + name};
      one.paid_usd_per_unit_hour = pool.price.value_or(0);
      one.held_by_others = pool.held_by_others;
      if (pool.held_by_others > 0) one.others = {"ns/first", "ns/second"};
      one.units_where_held = one.units;
      one.why_unpriced =
          fmt::format("the catalog (revision {}) does not hold it", cluster.catalog_revision.value_or(0));
      const auto choice = action.zones.find(name);
      const std::vector<PoolOutage> outages = cluster.outages_.Of(valid->object);
      if (!pool.zone_prices.empty()) {
        const ZoneChoice wanted = choice == action.zones.end() ? ZoneChoice() : choice->second;
        cluster.ReadZones(AvoidOutages(wanted, outages, valid->object.generation(), now), one);
      }
      LimitByOutages(outages, now, one);
      view.pools.push_back(std::move(one));
    }
    return view;
  }
  Answer operator()(const ReadPlan&) const {
    const auto map = cluster.objects_.find("ConfigMap/adult-plan");
    if (map == cluster.objects_.end()) return kube::ObjectPtr();
    return std::make_shared<const kube::Object>(map->second);
  }
  Answer operator()(const ReadProfiles& action) const {
    ProfilesView found;
    found.open = cluster.open_profiles_;
    for (const std::string& pool : action.pools) {
      const auto map = cluster.objects_.find("ConfigMap/" + ProfileConfigMapName(action.hash, pool));
      if (map != cluster.objects_.end()) found.stored[pool] = std::make_shared<const kube::Object>(map->second);
    }
    return found;
  }
  Answer operator()(const GetObject& action) const {
    const std::string name = action.key.name;
    if (action.resource.kind == "Secret") ++cluster.secrets_read;
    if (action.resource.kind == "Pod" && cluster.pods_.contains(name)) {
      return absl::StatusOr<kube::Object>(cluster.pods_.at(name));
    }
    const auto found = cluster.objects_.find(action.resource.kind + "/" + name);
    if (found == cluster.objects_.end()) {
      return absl::StatusOr<kube::Object>(base::NotFound("{} {}", action.resource.kind, name));
    }
    return absl::StatusOr<kube::Object>(kube::Object(found->second));
  }
  Answer operator()(const ReadLog&) const { return ReadLog::Answer(cluster.pod_log); }
  Answer operator()(const TakeTurn&) const { return TakeTurn::Taken{cluster.ahead, 1}; }
  Answer operator()(const ReserveUnits& action) const {
    const auto created = std::ranges::count_if(
        action.slots, [&](const MemberSlot& slot) { return !cluster.pods_.contains(slot.member); });
    if (cluster.most_new_pods && created > *cluster.most_new_pods) {
      return base::ResourceExhausted("{} pods have no unit", created - *cluster.most_new_pods);
    }
    std::map<std::string, std::set<std::string>> members;  // of both plans, by pool
    for (const MemberSlot& slot : action.until_switch) members[slot.pool].insert(slot.member);
    for (const MemberSlot& slot : action.slots) {
      std::set<std::string>& names = members[slot.pool];
      const bool is_new = names.insert(slot.member).second && !action.until_switch.empty() && !action.is_stored;
      if (!is_new || static_cast<int>(names.size()) <= cluster.pools[slot.pool].limit) continue;
      return base::FailedPrecondition("the pods of both plans exist during a switch; bounded by pool {}", slot.pool);
    }
    cluster.reserved_.clear();
    for (const MemberSlot& slot : action.slots) cluster.reserved_.insert(slot.member);
    for (const MemberSlot& slot : action.until_switch) cluster.reserved_.insert(slot.member);
    return absl::OkStatus();
  }
  Answer operator()(const EnsureObject& action) const {
    const std::string id = action.resource.kind + "/" + action.object.key().name;
    const bool created = !cluster.objects_.contains(id);
    if (created) cluster.Store(action.resource.kind, action.object.json());
    return EnsureObject::Outcome{kube::Object(cluster.objects_[id]), created};
  }
  Answer operator()(const CreateObject& action) const {
    const std::string id = action.resource.kind + "/" + action.object.key().name;
    if (cluster.objects_.contains(id)) {
      return absl::StatusOr<kube::Object>(base::AlreadyExists("create {}: it exists", id));
    }
    cluster.Store(action.resource.kind, action.object.json());
    return absl::StatusOr<kube::Object>(kube::Object(cluster.objects_[id]));
  }
  Answer operator()(const ApplyObject& action) const {
    cluster.Store(action.resource.kind, action.object.json());
    return absl::StatusOr<kube::Object>(
        kube::Object(cluster.objects_[action.resource.kind + "/" + action.object.key().name]));
  }
  Answer operator()(const DeleteObject& action) const {
    if (action.resource.kind == "TrainingJob") {
      cluster.job["metadata"]["deletionTimestamp"] = base::FormatTime(cluster.now());
      return absl::OkStatus();
    }
    const bool existed = cluster.objects_.erase(action.resource.kind + "/" + action.key.name) > 0;
    return existed ? absl::OkStatus() : base::NotFound("{}", action.key.name);
  }
  Answer operator()(const PatchJob& action) const {
    kube::MergePatch(cluster.job, action.patch);
    cluster.job["metadata"]["resourceVersion"] = "1";
    return absl::OkStatus();
  }
  Answer operator()(const CreatePods& action) const {
    CreatePods::Outcomes outcomes;
    for (const kube::Object& pod : action.pods) {
      const std::string name = pod.key().name;
      if (cluster.pods_.contains(name)) {
        outcomes.tried.push_back(base::AlreadyExists("pod {}", name));
        continue;
      }
      outcomes.tried.push_back(cluster.AddPod(pod));
    }
    return outcomes;
  }
  Answer operator()(const DeletePods& action) const {
    DeletePods::Outcome outcome;
    for (const DeletePods::Target& target : action.pods) {
      outcome.deleted.insert(target.uid);
      const auto pod = cluster.pods_.find(target.key.name);
      if (pod == cluster.pods_.end() || pod->second.uid() != target.uid) continue;
      cluster.TerminatePod(target.key.name, base::seconds(1));
    }
    return outcome;
  }
  Answer operator()(const SavePlan& action) const {
    SavePlan::Outcome outcome;
    outcome.refused = cluster.WhyPlanIsRefused(action.version);
    cluster.Store("ConfigMap", action.map.json());
    outcome.version = cluster.NewUid();
    cluster.objects_["ConfigMap/adult-plan"]["metadata"]["resourceVersion"] = outcome.version;
    return outcome;
  }
  Answer operator()(const Connect& action) const {
    cluster.connection_ = action.connection;
    cluster.heard_.reset();
    if (!cluster.Talks()) return std::shared_ptr<const Observation>();
    return std::make_shared<const Observation>(cluster.coordinator_->observation);
  }
  Answer operator()(const SendPlan& action) const {
    if (!cluster.Talks()) return SendPlan::Answer(base::Unavailable("the coordinator does not answer"));
    Coordinator& coordinator = *cluster.coordinator_;
    const int64_t generation = action.plan.plan.generation;
    if (generation < coordinator.observation.generation) {
      return SendPlan::Answer(base::FailedPrecondition("generation {} is in force", generation));
    }
    const auto& refused = coordinator.observation.refused;
    if (refused && refused->generation == generation) {
      return SendPlan::Answer(base::FailedPrecondition("plan {} was given up", generation));
    }
    if (generation > coordinator.observation.generation) {
      coordinator.observation.refused.reset();
      coordinator.next = action.plan;
      coordinator.observation.next_generation = generation;
    }
    return SendPlan::Answer(generation);
  }
  Answer operator()(const SuspendTraining&) const {
    SuspendTraining::Outcome outcome{int64_t{42}, nullptr};
    if (cluster.TalksToLeader()) {
      cluster.coordinator_->observation.phase = JobPhase::kSuspended;
      outcome.observed = std::make_shared<const Observation>(cluster.coordinator_->observation);
    } else {
      outcome.step = base::Unavailable("the coordinator does not answer");
    }
    return SuspendTraining::Answer(outcome);
  }
  Answer operator()(const DrainMembers&) const { return DrainMembers::Answer(absl::OkStatus()); }
  Answer operator()(const AskForPlan& action) const {
    ++cluster.plans_asked_;
    cluster.last_request_ = *action.request;
    return AskForPlan::Answer(cluster.planner ? cluster.planner(*action.request) : FirstPoolWithRoom(*action.request));
  }
};

namespace {

// The answer with which an action fails.
struct Failure {
  absl::Status error;

  template <typename A>
  Answer operator()(const A&) const {
    using Result = typename A::Answer;
    if constexpr (std::is_constructible_v<Result, absl::Status>) {  // also an optional
      return Result(error);
    } else {
      MEDLEY_CHECK(false, "this action cannot fail");
    }
  }
  Answer operator()(const EnsureObject&) const { return EnsureObject::Outcome{error, false}; }
  Answer operator()(const CreatePods&) const { return CreatePods::Outcomes{{error}}; }
  Answer operator()(const DeletePods&) const { return DeletePods::Outcome{{}, error}; }
  Answer operator()(const SavePlan&) const { return SavePlan::Outcome{error, "", false, nullptr}; }
  Answer operator()(const SuspendTraining&) const {
    return SuspendTraining::Answer(SuspendTraining::Outcome{error, nullptr});
  }
  Answer operator()(const AskForPlan&) const {
    return AskForPlan::Answer(AskForPlan::Outcome{error, error.code() == absl::StatusCode::kUnavailable});
  }
};

}  // namespace

Answer FakeCluster::Carry(const Action& action) {
  if (auto not_yet = Delayed(action)) return *std::move(not_yet);
  const std::string what = Describe(action);
  for (const auto& [prefix, error] : failures) {
    if (what.starts_with(prefix)) return std::visit(Failure{error}, action);
  }
  return std::visit(Hand{*this}, action);
}

void FakeCluster::Store(const std::string& kind, Json object) {
  const std::string id = kind + "/" + object["metadata"]["name"].get<std::string>();
  const auto existing = objects_.find(id);
  if (object["metadata"].value("uid", "").empty()) {
    object["metadata"]["uid"] = existing == objects_.end() ? Json(NewUid()) : existing->second["metadata"]["uid"];
  }
  object["metadata"]["resourceVersion"] = std::to_string(++versions_);
  if (object.value("kind", "").empty()) object["kind"] = kind;
  objects_[id] = std::move(object);
}

PassLog FakeCluster::Pass() {
  PassLog log;
  if (!ManagedByThisOperator(kube::Object(job))) return log;
  const JobInput input = Input();
  seen_ = Observe();
  int actions = 0;
  const Respond respond = [&](const Action& action) {
    MEDLEY_CHECK(++actions <= 1000, "the pass does not end: " + trace());
    CheckAction(action);
    const auto* create = std::get_if<CreateObject>(&action);
    const bool exists = create != nullptr && Has(create->resource.kind, create->object.key().name);
    if (!IsRead(action) && !exists) log.actions.push_back(Describe(action));
    return Carry(action);
  };
  const Decision decision = Decide(input, seen_, memory_, respond, options);
  memory_ = decision.memory;
  in_line_ = decision.line != LinePlace::kNone;
  if (decision.status.ok()) DropUnwanted();
  for (const Effect& effect : decision.effects) {
    if (const auto* event = std::get_if<PublishEvent>(&effect))
      log.events.push_back(event->reason + ": " + event->message);
    if (const auto* spent = std::get_if<AddSpent>(&effect)) log.spent_usd += spent->usd;
    if (const auto* report = std::get_if<ReportNoNode>(&effect)) CountNoNode(*report);
    if (const auto* offer = std::get_if<OfferObservation>(&effect); offer != nullptr && on_observation) {
      on_observation(*offer->observation);
    }
    if (std::holds_alternative<Disconnect>(effect)) {
      connection_.reset();
      heard_.reset();
    }
  }
  for (const std::string& action : log.actions) trace_.push_back(action);
  for (const std::string& event : log.events) {
    events_.push_back(event);
    trace_.push_back("  event " + event);
  }
  log.status = decision.status;
  log.requeue_after = decision.requeue_after;
  if (Talks()) heard_ = std::make_shared<const Observation>(coordinator_->observation);
  return log;
}

void FakeCluster::PassFor(base::nanoseconds time, std::optional<base::nanoseconds> every) {
  const int usual = time < std::chrono::minutes(5) ? 1 : time < std::chrono::minutes(30) ? 5 : 20;
  const base::nanoseconds step = every.value_or(base::seconds(usual));
  for (base::nanoseconds run{0}; run < time; run += step) {
    StepCluster();
    Pass();
    Advance(step);
  }
}

bool FakeCluster::StepPod(const std::string& name, kube::Object& object) {
  Json& pod = object.mutable_json();
  if (object.deleting()) {
    const auto due = base::ParseTime(object.String("/metadata/deletionTimestamp"));
    if (!due.ok() || *due > now() || hung_pods.contains(name)) return false;
    pods_.erase(name);
    return true;
  }
  if (kube::HasEnded(object) || copies.contains(object.uid())) return false;
  const std::string pool = object.label("medley.dev/pool");
  if (object.String("/spec/nodeName").empty()) {
    if (pool.empty() && coordinator_has_node) {
      const bool usable = !noticed_nodes.contains("control-0") && !nodes_not_ready.contains("control-0");
      pod["spec"]["nodeName"] = usable ? "control-0" : "control-1";
      return true;
    }
    const std::string pin = PinOf(object);
    for (const char* node : kNodesOfPool) {
      if (pool.empty()) break;  // the coordinator
      const std::string candidate = pool + "-" + node;
      const auto bound = std::count_if(pods_.begin(), pods_.end(), [&](const auto& other) {
        return other.second.String("/spec/nodeName") == candidate && !kube::HasEnded(other.second);
      });
      const bool takes_pods = !noticed_nodes.contains(candidate) && !nodes_not_ready.contains(candidate) &&
                              !blocked_nodes.contains(candidate);
      if (!takes_pods || bound >= UnitsOf(candidate)) continue;
      if (!pin.empty() && pin != ZoneOf(node)) continue;
      pod["spec"]["nodeName"] = candidate;
      return true;
    }
    const Json waits = {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
    const bool changed = !IsUnschedulable(object);
    pod["status"]["conditions"] = Json::array({waits});
    return changed;
  }
  if (object.String("/status/phase") == "Pending") {
    if (const auto waits = images.find(object.String("/spec/containers/0/image")); waits != images.end()) {
      const Json status = {{"name", "worker"}, {"state", {{"waiting", waits->second}}}};
      const bool changed = pod["status"].value("containerStatuses", Json()) != Json::array({status});
      pod["status"]["containerStatuses"] = Json::array({status});
      return changed;
    }
    pod["status"] = {{"phase", "Running"}, {"podIP", "10.0.0." + std::to_string(++uids_)}};
    return true;
  }
  if (object.label(kRoleLabel) == "profiler" && !slow_profilers.contains(pool)) {
    const auto code = profiler_exit_codes.find(pool);
    FailPod(name, code == profiler_exit_codes.end() ? profiler_exit_code : code->second);
    return true;
  }
  return false;
}

absl::Status FakeCluster::AddPod(const kube::Object& pod) {
  MEDLEY_RETURN_IF_ERROR(CheckPod(pod));
  CheckTerm(pod);
  Json made = pod.json();
  made["metadata"]["uid"] = NewUid();
  made["metadata"]["creationTimestamp"] = base::FormatTime(now());
  made["status"] = {{"phase", "Pending"}};
  pods_[pod.key().name] = kube::Object(std::move(made));
  return absl::OkStatus();
}

bool FakeCluster::StepCluster() {
  bool changed = false;
  for (const auto& [name, pool] : pools) changed = StepProfile(name) || changed;
  for (const std::string& name : pod_names()) {
    if (pods_.contains(name)) changed = StepPod(name, pods_[name]) || changed;
  }
  for (const auto& [name, pool] : pools) {
    if (outages_.See(PoolObject(name), PlacedPods(name))) StoreOutages(name);
  }
  return StepCoordinator() || changed;
}

bool FakeCluster::Settle() {
  base::nanoseconds quiet{0};
  const base::nanoseconds start = elapsed_;
  const int plans_before = plans_asked_;
  while (elapsed_ - start < std::chrono::hours(2)) {
    if (plans_asked_ - plans_before > kMostPlans) return false;
    const bool stepped = StepCluster();
    const PassLog pass = Pass();
    // A question to the planner changes nothing, and is asked again at intervals while a goal is missed.
    const bool acted =
        !pass.events.empty() || std::any_of(pass.actions.begin(), pass.actions.end(),
                                            [](const std::string& action) { return action != "ask for a plan"; });
    base::nanoseconds wait = pass.requeue_after.value_or(kLongestWait);
    for (const auto& [prefix, call] : calls_) {
      if (call.due > elapsed_) wait = std::min(wait, call.due - elapsed_);
    }
    wait = std::clamp(wait, base::nanoseconds(base::milliseconds(1)), kLongestWait);
    quiet = stepped || acted ? base::nanoseconds(0) : quiet + wait;
    if (quiet >= std::chrono::minutes(10)) return true;
    Advance(wait);
  }
  return false;
}

bool FakeCluster::RunUntilTraining() { return Settle() && Reason(kRunningCondition) == "True/GenerationCommitted"; }

std::set<std::string> FakeCluster::pod_names() const {
  std::set<std::string> names;
  for (const auto& [name, pod] : pods_) names.insert(name);
  return names;
}

std::map<std::string, Json> FakeCluster::pods_as_json() const {
  std::map<std::string, Json> found;
  for (const auto& [name, pod] : pods_) found[name] = pod.json();
  return found;
}

std::string FakeCluster::Reason(const char* condition) const {
  const JobStatus current = status();
  const Condition* found = current.conditions.Find(condition);
  return found == nullptr ? "" : std::string(ToString(found->status)) + "/" + found->reason;
}

std::string FakeCluster::Message(const char* condition) const {
  const JobStatus current = status();
  const Condition* found = current.conditions.Find(condition);
  return found == nullptr ? "" : found->message;
}

bool FakeCluster::HasEvent(const std::string& reason, const std::string& part) const {
  return std::any_of(events_.begin(), events_.end(), [&](const std::string& event) {
    return event.starts_with(reason + ": ") && event.find(part) != std::string::npos;
  });
}

std::optional<PlanRecord> FakeCluster::stored_plan() const {
  const auto map = objects_.find("ConfigMap/adult-plan");
  if (map == objects_.end()) return std::nullopt;
  if (auto record = ReadPlanRecord(kube::Object(map->second)); record.ok()) return *std::move(record);
  return std::nullopt;
}

std::string FakeCluster::trace() const {
  std::string text;
  for (size_t i = trace_.size() > 60 ? trace_.size() - 60 : 0; i < trace_.size(); ++i) text += trace_[i] + "\n";
  return text;
}

}  // namespace medley::ops::lifecycle
