// A cluster for tests of the life of a job, in memory and without threads: it answers the actions of one job's passes,
// and plays kubelet, coordinator, scheduling service and the controller of profiles. Time moves only when a test says
// so.
//
//   FakeCluster cluster;
//   cluster.RunUntilTraining();
//   cluster.FailPod("adult-0-a-0", 137);
//   EXPECT_THAT(cluster.Pass().actions, ElementsAre("delete pods adult-0-a-0"));
//
// It checks what must always hold and collects what does not in violations().
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/model/planning.h"
#include "operator/capacity/pool_outages.h"
#include "operator/lifecycle/lifecycle.h"
#include "operator/profiling/profiling.h"

namespace medley::ops::lifecycle {

// What one pass did.
struct PassLog {
  std::vector<std::string> actions;  // Describe of each that is not a read
  std::vector<std::string> events;   // "Reason: message"
  double spent_usd = 0;
  absl::Status status;
  std::optional<base::nanoseconds> requeue_after;
};

class FakeCluster {
 public:
  static constexpr int kUnits = 2;  // of a plan, and of a node
  static constexpr const char* kNodesOfPool[] = {"0", "1"};

  // A job "adult" of two units and three pools, a, b and c, with two nodes each: "a-0", "a-1", ...
  FakeCluster();
  // One whose job trains: RunUntilTraining of it, as it is constructed, which a process does once.
  static FakeCluster Training();

  // --- What tests change.
  kube::Json job;  // the TrainingJob with its status
  struct Pool {
    int limit = 4;
    std::optional<double> price = 1;
    // Not empty: `price` does not count, the catalog has these prices by zone. Node "a-0" is in zone "z0", and so on.
    std::map<std::string, double> zone_prices = {};
    std::set<std::string> unavailable_zones = {};
    std::string provision_timeout = "";  // not empty: the pool is autoscaled
    int held_by_others = 0;              // units that jobs ns/first and ns/second hold
    bool HasPrice() const { return price || !zone_prices.empty(); }
  };
  std::map<std::string, Pool> pools;
  // Merge patches of the ResourcePools, by name. A pool that is invalid with its patch does not exist for the job.
  std::map<std::string, kube::Json> pool_patches;
  std::optional<int64_t> catalog_revision = 7;
  std::set<std::string> noticed_nodes;  // with a spot notice
  std::set<std::string> nodes_not_ready;
  std::map<std::string, kube::Json> images;  // with which no container starts: `state.waiting`
  std::set<std::string> hung_pods;           // that no kubelet ends
  std::set<std::string> copies;              // UIDs of pods that another client has made (CopyPod)
  std::set<std::string> blocked_nodes;       // their units count as free, but no pod is bound to them
  std::set<std::string> broken_pools;        // whose members can never run a plan
  std::map<std::string, int> node_units;     // absent: two
  std::optional<int> most_new_pods;          // a plan for which more pods must be created gets no units
  bool coordinator_has_node = true;
  bool cache_is_current = true;
  int64_t quota_changes = 0;
  int64_t leader_term = 0;
  std::map<std::string, double> profile_seconds;       // of a batch on a unit, as the pool's profile says; absent: 1
  double weight_bytes = 0;                             // of the model's only layer
  std::vector<std::string> operator_keys = {"key-1"};  // of which credentials follow; the first for new jobs
  JobOptions options;
  int profiler_exit_code = 0;
  std::map<std::string, int> profiler_exit_codes;          // by pool, instead
  std::set<std::string> slow_profilers;                    // pools whose profilers do not end
  std::string pod_log = "line one\nsegmentation fault\n";  // of every pod but profilers that succeed
  // Answers instead of the fake's own planner, FirstPoolWithRoom.
  std::function<AskForPlan::Outcome(const model::PlanRequest&)> planner;
  // Takes the first pool of the request that offers two units.
  static AskForPlan::Outcome FirstPoolWithRoom(const model::PlanRequest& request);
  // What the coordinator reports of a plan that comes into force; null: 1,000 samples/s, and nothing of stages.
  std::function<void(const model::ExecutionPlan&, Observation&)> measure;
  // Takes what the job measured; null: nobody does.
  std::function<void(const model::JobObservation&)> on_observation;
  // Another job that is planned first while units are scarce; empty: none.
  std::string ahead;
  // By Describe's prefix: the error with which the action fails. Nothing is done then.
  std::map<std::string, absl::Status> failures;

  // By Describe's prefix: how long the answer takes, of actions that may take long. The same action asks for it again;
  // the job gets a pass when it has come.
  std::map<std::string, base::nanoseconds> delays;

  void SetSpec(const kube::Json& merge_patch);  // raises metadata.generation
  // A pod of any role ends. `code` 0: it succeeds.
  void FailPod(const std::string& name, int code);
  // What another client does to an object of the job, as in ("Service", "adult-coordinator").
  void EraseObject(const std::string& kind, const std::string& name) { objects_.erase(kind + "/" + name); }
  void PutObject(const std::string& kind, const kube::Json& object) { Store(kind, object); }
  void PutPod(const std::string& name, const kube::Json& pod) { pods_[name] = kube::Object(pod); }
  void EditObject(const std::string& kind, const std::string& name, const kube::Json& merge_patch);
  const kube::Json* FindObject(const std::string& kind, const std::string& name) const;  // null: it does not exist
  // Another client deletes the pod and creates one of the same name and containers, which no kubelet starts.
  void CopyPod(const std::string& name);
  void DeletePod(const std::string& name);                               // at once
  void TerminatePod(const std::string& name, base::nanoseconds grace);   // it stays until then
  void SetPodStatus(const std::string& name, const kube::Json& status);  // merged
  void SetCoordinatorToken(const std::string& token) { coordinator_->token = token; }
  Observation& coordinator();  // what it reports; it must run
  void Advance(base::nanoseconds by) { elapsed_ += by; }
  void FailOnPool(const std::string& pool);  // pods of another job found no node there
  void RestartOperator();

  // --- What happens.
  PassLog Pass();
  // Profiles, scheduler, kubelet and coordinator do one step. False: there was nothing to do.
  bool StepCluster();
  // Steps and passes until nothing changes for ten minutes of virtual time. False: it does not come to rest within
  // two hours; trace() tells.
  bool Settle();
  bool RunUntilTraining();  // Settle, and the job trains
  // A step and a pass `every` so often: by default every second, every five seconds of five minutes and more, and every
  // twenty of half an hour and more.
  void PassFor(base::nanoseconds time, std::optional<base::nanoseconds> every = std::nullopt);

  // --- What tests look at.
  const std::map<std::string, kube::Object>& pods() const { return pods_; }
  std::map<std::string, kube::Json> pods_as_json() const;
  std::set<std::string> pod_names() const;
  // The Secret of a job that the first of `operator_keys` was used for.
  std::string SecretName() const;
  bool Has(const std::string& kind, const std::string& name) const { return objects_.contains(kind + "/" + name); }
  JobStatus status() const { return JobStatus::FromJson(job.value("status", kube::Json())); }
  std::string Reason(const char* condition) const;   // "True/AllRunning"; "": absent
  std::string Message(const char* condition) const;  // "": absent
  const Memory& memory() const { return memory_; }
  Memory& memory() { return memory_; }
  const std::vector<std::string>& events() const { return events_; }  // of all passes
  bool HasEvent(const std::string& reason, const std::string& part = "") const;
  // For the pool, as its status stores them.
  const std::vector<PoolOutage>& outages(const std::string& pool) { return stored_outages_[pool]; }
  int secrets_read = 0;
  int plans_asked() const { return plans_asked_; }
  const model::PlanRequest& last_request() const { return last_request_; }
  std::optional<PlanRecord> stored_plan() const;
  const std::set<std::string>& reserved() const { return reserved_; }  // members whose units are reserved
  bool in_line() const { return in_line_; }
  // Everything that must be equal whatever the order of events: no generations, names, times or counts of restarts.
  std::string Digest() const;
  const std::vector<std::string>& violations() const { return violations_; }
  std::string trace() const;  // the last actions

  JobInput Input() const { return InputNow(); }
  World Observe() const;
  Answer Carry(const Action& action);

 private:
  struct Hand;  // carries out actions
  struct Coordinator {
    std::string pod_uid;
    std::string token;  // of the Secret when the pod started
    Observation observation;
    std::optional<PlanRecord> next;  // accepted, not in force yet
    std::optional<PlanRecord> plan;  // in force
  };

  std::string NewUid() { return "uid-" + std::to_string(++uids_); }
  base::WallTime now() const;
  bool StepPod(const std::string& name, kube::Object& pod);
  bool StepProfile(const std::string& pool);
  absl::Status AddPod(const kube::Object& pod);  // InvalidArgument as an API server says
  PoolOutages::Placed PlacedPods(const std::string& pool) const;
  void CountNoNode(const ReportNoNode& report);
  void StoreOutages(const std::string& pool);
  kube::Object PoolObject(const std::string& name) const;
  std::optional<ResourcePool> ValidPool(const std::string& name) const;  // nullopt: the operator refuses it
  profiling::World ObserveProfile(const std::string& pool) const;
  bool MayWantProfiles() const;
  const JobInput& InputNow() const;  // valid until the job changes
  // What the operator's informers hold of an object: the same one as before while `json` is the same.
  kube::ObjectPtr Cached(const std::string& id, const kube::Json& json) const;
  bool StepCoordinator();
  std::string leader_pod() const;
  void TakeOver(const std::string& leader);
  bool Obeys(const kube::Object& member) const;
  bool TalksToLeader() const;  // and not to a coordinator that has handed the job over
  // True when the operator is connected with the token that the coordinator knows.
  bool Talks() const { return coordinator_ && connection_ && connection_->credentials.token == coordinator_->token; }
  bool Runs(const std::string& member) const;
  int UnitsOf(const std::string& node) const;
  int FreeUnits(const std::string& pool, const std::string& zone) const;  // in any zone when `zone` is empty
  void ReadZones(const ZoneChoice& choice, PoolView& view) const;
  void Store(const std::string& kind, kube::Json object);
  bool WantsSuspension() const;
  // For a stored plan that is not the version that the operator knows; "": it is signed, or there is none.
  std::string WhyPlanIsRefused(const std::string& known_version) const;
  void CheckAction(const Action& action);
  void CheckDeletion(const DeletePods& action);
  void CheckTerm(const kube::Object& created);
  bool HasReasonToDelete(const kube::Object& pod) const;
  void Violate(const std::string& what);
  // The answer that says that the answer has not come yet. nullopt: it has come, or the action has no delay.
  std::optional<Answer> Delayed(const Action& action);
  // Drops the answers that two passes did not ask for, as SlowCalls does.
  void DropUnwanted();

  std::map<std::string, kube::Object> pods_;   // by name
  std::map<std::string, kube::Json> objects_;  // by "Kind/name"; no pods
  std::optional<Coordinator> coordinator_;
  std::optional<Coordinator> journal_;  // of the last one, for one that takes over
  std::optional<Connection> connection_;
  std::shared_ptr<const Observation> heard_;                   // of the connection
  std::map<std::string, profiling::Memory> profile_memories_;  // by pool
  std::map<std::string, ProfileProgress> open_profiles_;       // by pool
  std::set<std::string> measured_;                             // pools whose profile is stored
  struct Outages : PoolOutages {
    Outages() = default;
    Outages(const Outages& /*other*/) : PoolOutages() {}  // reads them in the statuses of the pools
  };
  Outages outages_;
  std::map<std::string, std::vector<PoolOutage>> stored_outages_;  // in the statuses of pools
  std::set<int64_t> terms_;                                        // of all coordinators that were created
  std::set<std::string> reserved_;
  bool in_line_ = false;
  struct Call {
    std::string question;
    std::shared_ptr<const void> request;
    base::nanoseconds due{0};  // on the clock of elapsed_
    bool was_offered = false;  // a pass has ended since
  };
  std::map<std::string, Call> calls_;  // whose answer is not there yet, by prefix
  // What was read from objects that may not have changed since.
  struct ReadInput {
    kube::Json admitted;
    JobInput input;
  };
  struct ReadPool {
    kube::Json object;
    std::optional<ResourcePool> pool;
  };
  mutable std::optional<ReadInput> read_;
  mutable std::map<std::string, ReadPool> read_pools_;
  struct CachedObject {
    kube::Json json;  // as the cluster has it
    kube::ObjectPtr object;
  };
  mutable std::map<std::string, CachedObject> cache_;
  Memory memory_;
  World seen_;  // of the pass that runs
  base::nanoseconds elapsed_{0};
  int uids_ = 0;
  int versions_ = 0;
  int plans_asked_ = 0;
  model::PlanRequest last_request_;
  std::vector<std::string> events_;
  std::vector<std::string> violations_;
  std::vector<std::string> trace_;
};

}  // namespace medley::ops::lifecycle
