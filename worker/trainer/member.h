// The loop that every member runs: orders of the session in, the role's work, reports out.
//
//   session thread --Halt: abort--> |        | --Warmed, Ready, Progress, Halted, ...-->
//                  --Prepare-->     prepare thread
//                  --the rest-->    worker thread (in order)
//
// Errors of the role become Fault; those of orders that a Halt has overtaken are dropped.
// Thread-safe: Run by one thread, Leave by any. Owned by the app.
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

  // For the role's own reports (Progress).
  void Send(job::v1::SessionRequest request);
  // Until Release: its exit code. Errors: no coordinator for too long, stopped (Cancelled), refused token.
  absl::StatusOr<int> Run(Role& role, std::stop_token stop);
  // SIGTERM: tells the coordinator; Run ends with Release, or with Cancelled when `notice` is over.
  void Leave(base::nanoseconds notice);

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

// Whether trying again can help; decides Fault.permanent and the exit code.
bool IsPermanent(const absl::Status& status);
// Whether an exchange with other members failed; decides Fault.kind.
bool IsExchange(const absl::Status& status);

}  // namespace medley::worker
