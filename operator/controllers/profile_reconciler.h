// Reconciler of profiles (operator/profiling): reads who wants a profile and what became of its profiler pod, and carries
// out the next step. Keys are those of KeyOf(ProfileId). Thread-safe, as controllers need it.
#pragma once

#include <map>
#include <memory>

#include "common/base/mutex.h"
#include "operator/controllers/job_deps.h"
#include "operator/profiling/board.h"
#include "operator/profiling/profiling.h"
#include "operator/runtime/reconciler.h"

namespace medley::ops {

// The index of jobs by the profiles that they may want, and its value for a profile.
inline constexpr char kProfileIndex[] = "profile";
std::vector<std::string> ProfilesOfJob(const kube::Object& job);
std::string ProfileIndexValue(const std::string& ns, const std::string& hash);

class ProfileReconciler final : public Reconciler {
 public:
  // `changed`: called after the board has changed, without a lock.
  ProfileReconciler(JobDeps deps, profiling::Options options, profiling::Board& board,
                    std::function<void(const ProfileId&)> changed);
  absl::StatusOr<Result> Reconcile(const kube::Key& key) override;

  // The profiles that the job may want now, on all pools; empty: none.
  std::vector<kube::Key> KeysOf(const kube::Object& job) const;

 private:
  profiling::World Observe(const ProfileId& id);
  absl::Status CarryOut(const ProfileId& id, const profiling::World& world, const profiling::Decision& decision);

  const JobDeps deps_;
  const profiling::Options options_;
  profiling::Board& board_;
  const std::function<void(const ProfileId&)> changed_;
  base::Mutex mutex_;
  // Each is used by one pass at a time: a controller never reconciles a key twice at once.
  std::map<ProfileId, std::shared_ptr<profiling::Memory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
