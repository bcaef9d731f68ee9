// Reads the job, and plays the controller of profiles.
#include "operator/api/names.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "operator/capacity/trim.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;

std::string ProfileJson(const std::string& pool, double seconds, double weight_bytes) {
  return fmt::format(
      R"({{"id": "p", "profileBatchSize": 512, "samplesPerEpoch": "1000000", "model": {{"layers": [{{"name": "fc",
       "kind": "OTHER", "weightBytes": {}, "profiles": [{{"resourceType": "{}", "computeSeconds": {}, "computeParallel": 1}}]}}]}}}})",
      weight_bytes, pool, seconds);
}

std::string OneLine(std::string text) {
  std::erase(text, '\n');
  return text;
}

}  // namespace

const JobInput& FakeCluster::InputNow() const {
  const auto map = objects_.find("ConfigMap/adult-spec");
  const Json admitted = map == objects_.end() ? Json() : map->second;
  if (!read_ || read_->admitted != admitted || read_->input.object->json() != job) {
    const Json spec = admitted.is_null() ? Json() : Json::parse(admitted["data"]["spec.json"].get<std::string>());
    read_ = {admitted, ReadJob(std::make_shared<const kube::Object>(job), spec)};
  }
  return read_->input;
}

bool FakeCluster::MayWantProfiles() const {
  const JobInput& input = InputNow();
  const JobStatus current = status();
  if (!input.job || !input.problems.empty() || job["metadata"].contains("deletionTimestamp")) return false;
  if (current.start_time.empty() || current.conditions.Find(kPlannedCondition) == nullptr) return false;
  if (current.finished() || input.job->run_policy.suspend) return false;
  return input.job->elasticity.enabled || !current.plan || !current.conditions.IsTrue(kPlannedCondition);
}

profiling::World FakeCluster::ObserveProfile(const std::string& pool) const {
  profiling::World world;
  world.steady = base::SteadyTime(base::seconds(1000) + elapsed_);
  world.now = now();
  const JobInput& input = InputNow();
  world.stored = objects_.contains("ConfigMap/" + ProfileConfigMapName(input.profile_hash, pool));
  const std::optional<ResourcePool> valid = ValidPool(pool);
  if (!MayWantProfiles() || !valid || !pools.at(pool).HasPrice()) return world;
  world.job = input.job;
  world.pool = *valid;
  world.free_units = FreeUnits(pool, "");
  for (const auto& [name, object] : pods_) {
    if (object.label("medley.dev/pool") != pool || object.deleting()) continue;
    --world.free_units;
  }
  world.bound = "nodes of " + pool;
  return world;
}

bool FakeCluster::StepProfile(const std::string& pool) {
  const std::string name = "adult-profile-" + pool;
  if (measured_.contains(pool) && !pods_.contains(name)) return false;
  profiling::World world = ObserveProfile(pool);
  const auto seconds = profile_seconds.find(pool);
  if (const auto pod = pods_.find(name); pod != pods_.end()) {
    world.pods = {Cached("Pod/" + name, pod->second.json())};
    world.log =
        world.pods.front()->String("/status/phase") == "Succeeded"
            ? "MEDLEY-PROFILE " +
                  OneLine(ProfileJson(pool, seconds == profile_seconds.end() ? 1 : seconds->second, weight_bytes)) +
                  "\n"
            : pod_log;
  }
  using Step = profiling::Decision::Step;
  profiling::Decision decision = profiling::Decide(world, profile_memories_[pool], {.worker = options.worker});
  profile_memories_[pool] = decision.memory;
  for (const profiling::Event& event : decision.events) events_.push_back(event.reason + ": " + event.message);
  if (decision.step == Step::kCreatePod) {
    if (!AddPod(ProfilerPod(*world.job, *world.pool, options.worker)).ok()) profile_memories_[pool] = {};
  } else if (decision.step == Step::kDeletePods) {
    TerminatePod(name, base::seconds(1));
  } else if (decision.step == Step::kStore) {
    kube::Object map = ProfileConfigMap(job["metadata"]["namespace"], InputNow().profile_hash, pool, decision.profile);
    options.record_keys.Sign(RecordKind::kProfile, "", map);
    Store("ConfigMap", map.json());
    measured_.insert(pool);
  }
  const auto known = open_profiles_.find(pool);
  const bool news = decision.progress ? known == open_profiles_.end() || known->second != *decision.progress
                                      : known != open_profiles_.end();
  open_profiles_.erase(pool);
  if (decision.progress) open_profiles_[pool] = *decision.progress;
  return news || decision.step != Step::kNone;
}

}  // namespace medley::ops::lifecycle
