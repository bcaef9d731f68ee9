// The life of one profile as a pure function: (what is observed, memory) -> the next step, memory.
//
//   wanted? -> a unit is free -> profiler pod -> its log -> stored
//                  ^                  |
//                  +---- back-off ----+ failed, too slow, unreadable
//                  +------------------+ its node is lost, or it was deleted
//
// A profile that cannot be measured does not stop jobs: they plan with the pools that have one.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "operator/builders/worker_env.h"
#include "operator/records/profile_id.h"

namespace medley::ops::profiling {

struct Options {
  WorkerSettings worker;
  // Profiler pods at the same time, of all jobs; 0: no bound. For machines that several pools share, where pods slow
  // each other down.
  int max_pods = 0;
  base::nanoseconds deadline = std::chrono::minutes(10);  // of a profiler pod, from when it has a node to its end
  // The deadline of the first try while other profiles wait for their turn (max_pods); doubles with each failure.
  base::nanoseconds turn_deadline = std::chrono::minutes(2);
  base::nanoseconds first_retry = base::seconds(2);  // doubles with each failure
  base::nanoseconds longest_retry = std::chrono::minutes(10);
  base::nanoseconds unit_poll = base::seconds(5);         // while no unit of the pool is free
  base::nanoseconds turn_poll = base::milliseconds(500);  // while max_pods others exist
  base::nanoseconds price_poll = base::seconds(30);       // while the pool has no price for any job
  base::nanoseconds node_poll = base::seconds(10);        // of the node of a pod that runs
  base::nanoseconds node_patience = base::seconds(60);    // a node not ready for this long is lost
  base::nanoseconds overdue = base::seconds(30);          // a deletion, after the pod's grace period
};

// Kept from pass to pass, until the profile is stored or no job wants it any more.
struct Memory {
  std::string pool_version;  // UID and metadata.generation; earlier failures are forgotten when it changes
  // By UID of the job whose pod template was used; see ProfileProgress.
  std::map<std::string, int> failures;
  std::set<std::string> refused;
  std::map<std::string, int> failed_creations;  // in a row, by UID of the job
  base::SteadyTime retry_at{};
  std::string failed_pod;  // UID of the pod that failed last, so that it is counted once
  std::optional<ProfileProgress> last_failure;
  // The pod that was seen last, and since when, without a node or with one: pods in caches have no creation time.
  std::string seen_pod;
  bool seen_with_node = false;
  base::SteadyTime seen_since{};
  std::optional<base::SteadyTime> not_ready_since;  // the node of that pod
  std::string lost_pod;                             // UID of the pod whose lost node was published last
};

struct World {
  base::SteadyTime steady;
  base::WallTime now;
  bool stored = false;             // a readable profile exists
  bool wanted = false;             // by a job, perhaps one for which the pool has no price
  std::optional<TrainingJob> job;  // the one that ChooseJob has chosen; nullopt: no job wants the profile
  std::optional<ResourcePool> pool;
  bool other_pods = false;   // as many pods of other profiles exist as max_pods allows, or others come first
  bool others_wait = false;  // because this profile has a pod
  int free_units = 0;        // of the pool, for that job
  std::string bound;         // what limits them
  // The profiler pods of this profile that exist, whichever job they were created for.
  std::vector<kube::ObjectPtr> pods;
  bool node_not_ready = false;  // of the first pod
  // For the first pod, once its worker has ended and the step kReadLog has asked for it. An error: it cannot be read.
  std::optional<absl::StatusOr<std::string>> log;
};

// Chooses the job whose pod template is used next, so that the broken template of one job does not keep the others from
// their profile: the one that failed least often and was not refused; among equals the first. `uids`: of the jobs that
// want the profile, at least one.
std::string ChooseJob(const std::vector<std::string>& uids, const Memory& memory);

// The profile waits only for its turn: it has no pod, may have one, and a unit is free.
bool IsReady(const World& world, const Memory& memory);
// For all jobs' templates, since the pool was edited.
int Failures(const Memory& memory);

// Tells pools apart in which a measurement may differ; what a pool costs and who may use it does not count. An
// annotation of profiler pods: a pod of another version is deleted, whatever it has measured.
std::string PoolVersion(const ResourcePool& pool);

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
};

struct Decision {
  // kForceDeletePods: without a grace period, those whose deletion is overdue. Nothing but its log comes out of a
  // profiler pod, so it does no harm that the process may still run on a node that does not answer.
  enum class Step { kNone, kReadLog, kCreatePod, kDeletePods, kForceDeletePods, kStore };
  Step step = Step::kNone;
  std::string profile;  // kStore: the JSON. The pods are deleted in the next pass.
  Memory memory;
  std::optional<ProfileProgress> progress;  // nullopt: stored, or not wanted
  std::vector<Event> events;                // to publish on world.job
  bool no_node = false;                     // no node came for the pod: an outage, of an autoscaled pool
  std::optional<base::nanoseconds> requeue_after;
};

// The kubelet should have deleted the pod by now and has not: it does not answer. Without a deletion timestamp: false.
bool DeletionIsOverdue(const kube::Object& pod, base::WallTime now, const Options& options);

// Returns the next step. After kReadLog, call it again with world.log set. Pure.
Decision Decide(const World& world, const Memory& memory, const Options& options);

// Call it when the pod that Decide asked for could not be created: counts a failure and sets the time of the next
// attempt.
Decision AfterFailedCreation(const World& world, const Memory& memory, const Options& options, const std::string& why);

}  // namespace medley::ops::profiling
