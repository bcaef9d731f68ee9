// One candidate for a Lease: the single steps of leader election, without threads or waits (the body of client-go's
// tryAcquireOrRenew and release). LeaderElector turns it into loops.
//
// Validity is judged by this process's own monotonic clock: from the moment at which the record was last seen to
// change, for the time that the record itself names. Times inside the record are never compared, so clocks may differ
// (though not run at very different rates).
//
// TryAcquireOrRenew and Release from one thread at a time; everything else from any.
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
    std::string identity;                                  // of this process alone
    base::nanoseconds lease_duration = base::seconds(15);  // whole seconds
  };
  Candidate(Client& client, base::Clock& clock, Options options);

  // One try to take the Lease, or to renew it. True: this process holds it now.
  bool TryAcquireOrRenew();
  // Gives the Lease up, when this process holds it: no holder, one second, the same term. Tries again after a conflict
  // and other errors that may pass, for at most `patience` and until `stop`. False: it could not be written.
  bool Release(base::nanoseconds patience, std::stop_token stop);
  // What a watch brought. Ignored when it is older than what is known.
  void Observe(const Object& lease);
  // The term of every later write is at least `term`, while this process is the holder: for one who learns that a
  // newer term was seen although it holds the Lease (which was deleted and made anew). Above 2^30: ignored.
  void RaiseTerm(int64_t term);

  bool IsLeader() const;
  LeaderRecord record() const;  // as last observed
  bool seen() const;            // a record was observed
  // When the observed record stops being valid, if it does not change.
  base::SteadyTime valid_until() const;
  // When the last successful write of this process began.
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
  Object lease_;  // as last read or written; of the stepping thread alone
  mutable base::Mutex mutex_;
  bool seen_ ABSL_GUARDED_BY(mutex_) = false;
  LeaderRecord observed_ ABSL_GUARDED_BY(mutex_);
  std::string version_ ABSL_GUARDED_BY(mutex_);  // resourceVersion of observed_
  base::SteadyTime observed_at_ ABSL_GUARDED_BY(mutex_){};
  base::SteadyTime renewed_at_ ABSL_GUARDED_BY(mutex_){};
  int64_t least_term_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::kube
