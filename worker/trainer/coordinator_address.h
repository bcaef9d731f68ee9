// Where a member finds its coordinator. The address changes when another coordinator takes the job over: the former one
// says so (Redirect), or the claims in the checkpoint folder do (worker/claim).
//
// Terms only grow: what a coordinator with a smaller term says is too late. Thread-safe; the member's session and its
// rendezvous stores share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "worker/checkpoint/files.h"
#include "worker/checkpoint/volume_thread.h"
#include "worker/claim/claims.h"

namespace medley::worker {

class CoordinatorAddress {
 public:
  // `address`: of the coordinator for which the member was started. `checkpoint_root` empty: it never changes.
  CoordinatorAddress(std::string address, const Volume& checkpoint_root);

  // The term is the largest that this member has obeyed or whose claim it has seen; 0 until one is known.
  Claim current() const;
  // The coordinator of a larger term, which may not have claimed the job yet, is probably there. This changes the
  // address only: if it never claims the job, the former one leads on. Older claims do not count until DropHint.
  void Hint(const Claim& successor);
  void DropHint();
  bool hinted() const;
  // The coordinator at the current address has said its term. False: this member has obeyed a larger one.
  bool Welcome(int64_t term);
  base::nanoseconds interval() const;  // between two looks, while a session lives
  // Looks at the claims, for 2 s at most. True when the address has changed. A claim that cannot be read is skipped.
  bool LookAtClaims(std::stop_token stop);

 private:
  Claim seen() const;

  const std::optional<Claims> claims_;
  const std::unique_ptr<VolumeThread> volume_;  // null: no claims
  mutable base::Mutex mutex_;
  Claim current_ ABSL_GUARDED_BY(mutex_);
  Claim seen_ ABSL_GUARDED_BY(mutex_);               // by the last look
  int64_t hinted_term_ ABSL_GUARDED_BY(mutex_) = 0;  // larger than that of current_; 0: no hint
};

}  // namespace medley::worker
