// Leader election on a Lease (client-go's leaderelection): of all processes that run it for one Lease, one leads.
//
//   stopped --Run--> waiting --took the Lease--> leading --stop, work ended, Lease released--> stopped (OK)
//                                                   \--no renewal within the deadline, or another holds it--> lost
//
// Two leaders may overlap for as long as one of them does not notice what happened (it was paused, its clock runs
// slowly): Guard narrows that to calls in flight, and term() lets receivers refuse the older one.
//
// Beyond client-go: candidates watch the Lease, so that they count from the moment of a change and wake when it runs
// out or is given up, instead of up to two polls later; and renewing goes on until the guarded work has ended.
//
// Thread-safe. Run once. Owner: ops::Manager.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/rng.h"
#include "kube/leader/candidate.h"

namespace medley::kube {

class LeaderElector {
 public:
  struct Options {
    Key lease;
    std::string identity;
    base::nanoseconds lease_duration = base::seconds(15);
    base::nanoseconds renew_deadline = base::seconds(10);
    base::nanoseconds retry_period = base::seconds(2);
    // When stopped, and only after the guarded work has ended: the next leader need not wait.
    bool release_on_cancel = false;
    uint64_t seed = 1;
  };
  struct Callbacks {
    // The guarded work, in a thread of its own; it returns soon after its token is stopped. When it returns by itself,
    // Run ends as if stopped.
    std::function<void(std::stop_token)> on_started_leading;
    // Always, when Run ends, also if this process never led. After a loss it is called before the work has ended.
    std::function<void()> on_stopped_leading;
    // For every change of the holder that is seen, the first included; may be null. It must return soon.
    std::function<void(const std::string& holder)> on_new_leader;
  };

  // `client` is borrowed; give it a request timeout of RequestTimeout and no retries, and let nothing else use it.
  // Errors: InvalidArgument unless lease > renew deadline > 1.2 x retry period > 0, lease in whole seconds.
  static absl::StatusOr<std::unique_ptr<LeaderElector>> Create(Client& client, base::Clock& clock, Options options,
                                                               Callbacks callbacks);

  // Waits for the Lease, leads, and returns when stopped (OK) or when the lead was lost (Aborted).
  absl::Status Run(std::stop_token stop);

  bool leading() const { return leading_; }
  std::string leader() const { return candidate_.record().holder; }  // empty: none, or not seen yet
  int64_t term() const { return candidate_.record().transitions; }   // of that leader
  // OK while this process may act as the leader: it leads, and its last renewal is younger than the renew deadline.
  absl::Status Guard() const;
  // For /healthz: a leader that has not renewed for lease + tolerance should have ended long ago.
  absl::Status Check(base::nanoseconds tolerance) const;
  // Somebody saw `term` from another leader: if this process holds the Lease all the same, its next renewal takes a
  // newer term. See Candidate::RaiseTerm.
  void HeardOfTerm(int64_t term) { candidate_.RaiseTerm(term + 1); }

 private:
  LeaderElector(Client& client, base::Clock& clock, Options options, Callbacks callbacks);
  bool Acquire(std::stop_token stop);
  void WaitToTry(std::stop_token stop);
  void Watch(std::stop_token stop);
  absl::Status Lead(std::stop_token stop);
  bool RenewUntil(std::stop_token over);
  void Renew(std::stop_token stop, std::stop_source& over);
  void ReportHolder();
  void WakeAcquire();

  Client& client_;
  base::Clock& clock_;
  const Options options_;
  const Callbacks callbacks_;
  Candidate candidate_;
  base::Rng rng_;         // of Run's thread
  std::string reported_;  // the holder that on_new_leader was last told; of the stepping thread
  std::atomic<bool> leading_ = false;
  std::atomic<bool> working_ = false;  // from the start of the lead until the guarded work has ended
  base::Mutex mutex_;
  std::stop_source wake_ ABSL_GUARDED_BY(mutex_);  // ends the wait of Acquire
};

// For the elector's own client: an API server that hangs must not use up the whole renew deadline.
base::nanoseconds RequestTimeout(base::nanoseconds renew_deadline);

// "HOST_UUID": unique however often a process is started on a host.
std::string LeaderIdentity(const std::string& host, uint64_t random_high, uint64_t random_low);

}  // namespace medley::kube
