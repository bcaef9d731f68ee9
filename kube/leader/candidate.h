// A candidate for a Lease: the single steps of leader election, without threads or waits (the bodies of client-go's
// tryAcquireOrRenew and release). LeaderElector calls them in loops.
//
// This process's monotonic clock decides whether the Lease is still valid: it is valid for the duration in its record,
// counted from the moment when this process last saw the record change. Times inside the record are never compared, so
// the clocks of candidates may differ, but must run at similar rates.
//
// TryAcquireOrRenew and Release must be called by one thread at a time; the other functions by any thread.
#pragma once

#include <absl/status/status.h>

#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/client.h"
#include "kube/leader/record.h"

namespace medley::kube {

class Candidate {
 public:
  struct Options {
    Key lease;
    std::string identity;                                  // unique to this process
    base::nanoseconds lease_duration = base::seconds(15);  // whole seconds
  };
  Candidate(Client& client, base::Clock& clock, Options options);

  // Tries once to take or renew the Lease. Returns true if this process now holds it.
  bool TryAcquireOrRenew();
  // Releases the Lease if this process holds it: no holder, a duration of one second, the same term. Retries after
  // conflicts and transient errors for at most `patience`, or until `stop`. Returns false if it could not be written.
  bool Release(base::nanoseconds patience, std::stop_token stop);
  // Takes the Lease from a watch event. Ignores it if it is older than the observed one.
  void Observe(const Object& lease);
  // While this process is the holder, its next writes use at least `term`. Call it if another leader was seen with a
  // larger term although this process holds the Lease (the Lease was deleted and recreated). Ignores terms above 2^30.
  void RaiseTerm(int64_t term);

  bool IsLeader() const;
  LeaderRecord record() const;  // the last observed record
  bool seen() const;            // true if a record was observed
  // The term of the last record of which this process was the holder; 0 before the first. It stays when another process
  // takes the Lease, so that what is sent afterwards is recognised as stale.
  int64_t held_term() const;
  // When the observed record becomes invalid, unless it changes.
  base::SteadyTime valid_until() const;
  // When this process's last successful write began.
  base::SteadyTime renewed_at() const;

 private:
  void SetObserved(LeaderRecord record, std::string version);
  bool ValidLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const LeaderRecord& record, bool create);
  bool Renew(LeaderRecord wanted);
  bool CreateLease(LeaderRecord wanted);
  bool TakeOrKeep(LeaderRecord wanted);

  Client& client_;
  base::Clock& clock_;
  const Options options_;
  Object lease_;  // as last read or written; used only by the thread that calls the steps
  mutable base::Mutex mutex_;
  bool seen_ ABSL_GUARDED_BY(mutex_) = false;
  LeaderRecord observed_ ABSL_GUARDED_BY(mutex_);
  std::string version_ ABSL_GUARDED_BY(mutex_);  // resourceVersion of observed_
  base::SteadyTime observed_at_ ABSL_GUARDED_BY(mutex_){};
  base::SteadyTime renewed_at_ ABSL_GUARDED_BY(mutex_){};
  int64_t least_term_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t held_term_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::kube
