// Which pods this operator, or the one before it, has created.
//
// A signature (builders/pod_signature.h) is good for one pod: for that of which the API server says that it was created
// when the operator signed, and if several are, for that whose UID the creation returned or which was seen first. So
// what a user copies from a pod that was deleted is no signature, although the copy has the pod's name:
//
//   operator signs, creates    pod A: UID a, created in time       -> kOwn; the signature is spent by a
//   user deletes A, makes B    same name and container, UID b      -> kCopy
//   operator restarts          A: created in time                  -> kOwn, also if it crashed before the answer came
//                              B: created later                    -> kCopy
//
// Nothing is stored: creationTimestamp and UID are the API server's words. What is left is a copy that is made within
// two minutes of the original and that no operator or standby of now has seen beside it. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "operator/builders/pod_signature.h"

namespace medley::ops {

enum class PodOrigin { kOwn, kUnsigned, kCopy };

class SignedPods {
 public:
  // `clock` is borrowed.
  SignedPods(RecordKeys keys, base::Clock& clock) : keys_(std::move(keys)), clock_(clock) {}

  // Signs `pod` for a creation that follows at once.
  void Sign(kube::Object& pod) const;
  // `pod`: what the API server has created of a signed pod. False: its clock differs from this machine's, so that no
  // operator will believe the pod: delete it. Later signatures have the API server's time.
  bool Created(const kube::Object& pod);

  // `pod`: as the API server shows it.
  PodOrigin OriginOf(const kube::Object& pod);
  // The pod with this UID exists no more.
  void Erased(const kube::Key& pod, const std::string& uid);

  size_t size() const;  // names that are remembered: of pods that exist, and for minutes after that

 private:
  using Time = int64_t;  // of signatures, in milliseconds
  struct Name {
    std::map<Time, std::string> spent;  // by which UID
    std::string present;                // UID of the pod of this name; empty: none
    Time present_time = 0;
  };
  base::WallTime Now() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return clock_.Now() + ahead_; }
  void ForgetOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RecordKeys keys_;
  base::Clock& clock_;
  mutable base::Mutex mutex_;
  base::nanoseconds ahead_ ABSL_GUARDED_BY(mutex_){0};  // of the API server's clock; as last seen
  base::WallTime forget_at_ ABSL_GUARDED_BY(mutex_){};
  std::map<kube::Key, Name> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
