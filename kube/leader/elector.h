// Leader election on a Lease (client-go's leaderelection): one of the processes that compete for the Lease leads.
//
//   stopped --Run--> waiting --took the Lease--> leading --stop or work ended; Lease released--> stopped (OK)
//                                                   \--not renewed in time, or another process holds it--> lost
//
// Two leaders may overlap until the older one notices that it is no longer the leader, for example because it was
// paused or its clock runs slowly. Guard() limits what the older one can still do to calls in flight, and term() lets
// receivers refuse its calls.
//
// Unlike client-go, candidates watch the Lease, so they wake when it expires or is released instead of up to two polls
// later. And the leader renews until the guarded work has ended.
//
// Thread-safe. Call Run once. Owner: operator/runtime/manager.h.
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
    // Release the Lease when stopped, after the guarded work has ended, so that the next leader need not wait.
    bool release_on_cancel = false;
    uint64_t seed = 1;
  };
  struct Callbacks {
    // The guarded work. It runs on its own thread and must return soon after its token is stopped. If it returns by
    // itself, Run ends as if stopped.
    std::function<void(std::stop_token)> on_started_leading;
    // Called whenever Run ends, even if this process never led. After a loss it is called before the work has ended.
    std::function<void()> on_stopped_leading;
    // Called for every change of the holder, including the first holder. May be null. Must return soon.
    std::function<void(const std::string& holder)> on_new_leader;
  };

  // `client` is borrowed. Give it the request timeout RequestTimeout() and no retries, and use it for nothing else.
  // Errors: InvalidArgument unless lease > renew deadline > 1.2 x retry period > 0 and the lease is in whole seconds.
  static absl::StatusOr<std::unique_ptr<LeaderElector>> Create(Client& client, base::Clock& clock, Options options,
                                                               Callbacks callbacks);

  // Waits for the Lease, leads, and returns OK when stopped or Aborted when this process lost the Lease.
  absl::Status Run(std::stop_token stop);

  bool leading() const { return leading_; }
  std::string leader() const { return candidate_.record().holder; }  // empty: none, or not known yet
  // With which this process leads, or led last; 0: it never led, or leads in the first term.
  int64_t term() const { return candidate_.held_term(); }
  // Returns OK while this process may act as leader: it leads, and its last renewal is younger than the renew deadline.
  absl::Status Guard() const;
  // For /healthz: fails if a leader has not renewed for lease + tolerance; it should have ended long before.
  absl::Status Check(base::nanoseconds tolerance) const;
  // Another leader was seen with `term`. If this process nevertheless holds the Lease, its next renewal uses a larger
  // term. See Candidate::RaiseTerm.
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
  base::Rng rng_;         // used by Run's thread
  std::string reported_;  // the last holder passed to on_new_leader; used by the thread that calls the steps
  std::atomic<bool> leading_ = false;
  std::atomic<bool> working_ = false;  // from the start of leading until the guarded work has ended
  base::Mutex mutex_;
  std::stop_source wake_ ABSL_GUARDED_BY(mutex_);  // ends the wait of Acquire
};

// The timeout for the elector's client: one request to an API server that hangs must not use up the renew deadline.
base::nanoseconds RequestTimeout(base::nanoseconds renew_deadline);

// "HOST_UUID": unique for each start of a process.
std::string LeaderIdentity(const std::string& host, uint64_t random_high, uint64_t random_low);

}  // namespace medley::kube
