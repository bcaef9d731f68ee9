// Creating and deleting pods of the job, whatever their role.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops::lifecycle {

class Pass;

struct RefusedPod {
  bool by_quota = false;
  std::string why;
};

struct PodsState {
  static constexpr char kOwner[] = "pods";
  std::map<std::string, RefusedPod> refused;  // pods that the API server did not admit
  // Names that the API server did not give to a pod, because another one has them: whether that one is lost, such as a
  // pod of an earlier job on a node that does not answer.
  std::map<std::string, bool> occupied;
  std::map<std::string, base::SteadyTime> log_asked;  // since when, by UID of a pod that has ended
  std::set<std::string> deleted;                      // UIDs of pods that the cache may still show as running
};

// Forgets deletions that the cache shows.
void ForgetDeletedPods(Pass& pass);
void ForgetRefusals(Pass& pass);  // the pods are not wanted any more

enum class NodeChoice { kAny, kAvoidNoticed };

// Creates pods of the job. A pod that the API server does not admit (a quota, an admission plugin, an invalid
// template) is remembered as refused and tried again later: this is not an error, and the pods after it are not
// tried. Names are deterministic: a pod that exists already is this job's, terminating, or another user's.
absl::Status CreatePodsOf(Pass& pass, std::vector<kube::Object> pods, NodeChoice nodes = NodeChoice::kAny);

// A pod that is not this job's, or that the cache does not show, has the name and does not end.
bool IsNameLost(const Pass& pass, const std::string& name);

absl::Status DeletePod(Pass& pass, const kube::Object& pod);
absl::Status DeleteSome(Pass& pass, const std::vector<kube::ObjectPtr>& pods);
// Deletes the pods of other users that copy pods of the job, and says so: whatever they do, the job does not wait for
// them, and gets pods of its own.
absl::Status DeleteCopies(Pass& pass);
enum class WhichPods { kAll, kRunning, kRunningMembers };  // members: all but coordinators
absl::Status DeletePodsOf(Pass& pass, WhichPods which);

// The cause in the last line of the pod's log (operator/api/cause.h); empty when it cannot be read, or not in time.
// nullopt: not read yet; the job gets a pass when it is.
absl::StatusOr<std::optional<std::string>> LastLineOf(Pass& pass, const kube::Object& pod);
// "was killed by signal 9", "ran out of memory", or "failed with exit code 2: CAUSE". nullopt as above.
absl::StatusOr<std::optional<std::string>> HowItEnded(Pass& pass, const kube::Object& pod);

// How long to wait after so many failures: 2 s, 4 s, ... up to a minute.
int BackoffSeconds(int failures);

}  // namespace medley::ops::lifecycle
