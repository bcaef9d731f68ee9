// Reconciler of profiles (operator/profiling): reads which jobs want a profile and what became of its profiler pod, and
// carries out the next step. Keys are those of KeyOf(ProfileId). Thread-safe, as controllers need it.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "common/base/mutex.h"
#include "operator/controllers/job_deps.h"
#include "operator/profiling/board.h"
#include "operator/profiling/profiling.h"
#include "operator/runtime/reconciler.h"

namespace medley::ops {

// The index that groups jobs and profiler pods by (namespace, profile hash): its name, its values, and the functions
// that compute them. They return nothing for a job whose spec is invalid.
std::string ProfileHashOf(const kube::Object& job);  // empty: the spec is invalid
inline constexpr char kProfileIndex[] = "profile";
std::string ProfileIndexValue(const std::string& ns, const std::string& hash);
std::vector<std::string> ProfileOfJob(const kube::Object& job);
std::vector<std::string> ProfileOfPod(const kube::Object& pod);  // empty: it is no profiler

// The key of the profile that a ConfigMap holds or a pod measures, by its labels; empty: none.
std::vector<kube::Key> ProfileKeyByLabels(const kube::Object& object);

// False when the job has not started, has finished, is suspended or being deleted, belongs to another controller, or
// has a plan and no elasticity.
bool MayWantProfiles(const kube::Object& job);

class ProfileReconciler final : public Reconciler {
 public:
  // `changed`: called after the progress of a profile (deps.profiles) has changed, without a lock.
  ProfileReconciler(JobDeps deps, profiling::Options options, std::function<void(const ProfileId&)> changed);
  absl::StatusOr<Result> Reconcile(const kube::Key& key) override;

  // For a process that has just begun to lead: the board does not report the pools before these were looked at.
  void ExpectAll();

  // The profiles of the job's model on all pools; empty: the job's spec is invalid.
  std::vector<kube::Key> KeysOf(const kube::Object& job) const;

 private:
  profiling::World Observe(const ProfileId& id, const profiling::Memory& memory);
  // Publishes an Event of the job, once for each version of the stored profile.
  void ReportRefused(const ProfileId& id, const kube::Object& map, const absl::Status& why, const kube::Object& job);
  // A job that wants the profile, and the pool as it sees it.
  struct Candidate {
    TrainingJob job;
    lifecycle::PoolView view;
  };
  std::vector<Candidate> Candidates(const ProfileId& id) const;  // oldest first
  // Reads the pod's log and reserves a unit where the next step needs it. Errors: the log of a pod that has succeeded
  // cannot be read now.
  absl::StatusOr<profiling::Decision> NextStep(const ProfileId& id, profiling::World& world, profiling::Memory& memory);
  // `overdue`: without a grace period, those whose deletion is overdue; otherwise those that are not terminating.
  absl::Status DeletePods(const profiling::World& world, bool overdue);
  absl::Status CarryOut(const ProfileId& id, const profiling::World& world, const profiling::Decision& decision);
  // Counts the pod of the profile among all profiler pods, where their number is bounded. A free turn is for the
  // profile that has failed least often: a pool that cannot be measured must not delay the others. Fills other_pods
  // and others_wait.
  void TakeTurn(const ProfileId& id, const profiling::Memory& memory, profiling::World& world);
  void ReportNoNode(const profiling::World& world);
  // Reserves the unit on which the profiler pod will measure, if other owners have left one (CapacityView::Reserve).
  absl::Status ReserveUnit(const ProfileId& id, const profiling::World& world);
  // True while a pod of the profile exists that has not ended, or may exist and is not in the cache yet.
  bool HoldsUnit(const ProfileId& id, const profiling::World& world);
  void ReleaseUnit(const ProfileId& id);
  // OK also when the profile has been stored meanwhile, or when a pod of it exists that the cache does not show yet.
  absl::Status CreatePod(const ProfileId& id, const profiling::World& world);

  const JobDeps deps_;
  const profiling::Options options_;
  const std::function<void(const ProfileId&)> changed_;
  base::Mutex mutex_;
  // The profiles with a pod, those that are about to get one included. Only with a bound on the number of pods.
  std::set<ProfileId> with_pod_ ABSL_GUARDED_BY(mutex_);
  std::map<ProfileId, int> waiting_ ABSL_GUARDED_BY(mutex_);  // for their turn; with their failures
  // Pods that were created and that the cache has not shown yet, and since when.
  std::map<ProfileId, base::SteadyTime> unseen_ ABSL_GUARDED_BY(mutex_);
  std::map<ProfileId, std::string> refused_ ABSL_GUARDED_BY(mutex_);  // resourceVersions that were reported
  // Each is used by one pass at a time: a controller never reconciles a key twice at once.
  std::map<ProfileId, std::shared_ptr<profiling::Memory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
