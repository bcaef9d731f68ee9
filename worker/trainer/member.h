// The loop that every member runs: receives orders from the session, lets the role carry them out, sends reports.
//
//   session thread: receives orders; on Halt it aborts what the role is doing
//   prepare thread: carries out Prepare
//   worker thread:  carries out all other orders, in the order received
//
// An error of the role is reported as Fault, except when a Halt arrived after the order. If the process can compute
// nothing more (Role::CheckDevice), Run then ends, and the operator replaces it. Thread-safe: one thread calls Run, any
// thread may call Leave. Owned by the app.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>

#include "common/base/clock.h"
#include "worker/trainer/role.h"
#include "worker/trainer/session.h"

namespace medley::worker {

class Member {
 public:
  Member(SessionOptions options, base::Clock& clock);
  ~Member();

  // Sends a report of the role (Progress).
  void Send(job::v1::SessionRequest request);
  // Runs until the coordinator sends Release; returns its exit code. Errors: Unavailable (no coordinator for too long),
  // Cancelled (stopped), Unauthenticated (the token was refused), those of Role::CheckDevice.
  absl::StatusOr<int> Run(Role& role, std::stop_token stop);
  // Sends Leaving to the coordinator. Run then ends with Release, or with Cancelled when `notice` has passed.
  void Leave(base::nanoseconds notice);

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

// Whether a retry cannot help; decides Fault.permanent and the exit code.
bool IsPermanent(const absl::Status& status);
// Whether an exchange with other members failed; decides Fault.kind.
bool IsExchange(const absl::Status& status);

}  // namespace medley::worker
