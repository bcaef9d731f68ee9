// How many requests are answered at once, and how many wait for their turn.
//
//   MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit, admission.Enter(stop, deadline));
//   ... the work; the permit is free again when `permit` ends
//
// First come, first served. Thread-safe. Slots must not outlive the admission.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <deque>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"

namespace medley::sched {

class Admission {
 public:
  struct Options {
    int max_running = 4;
    int max_waiting = 16;
    base::nanoseconds max_wait = base::seconds(1);
  };

  class Permit {
   public:
    explicit Permit(Admission* admission) : admission_(admission) {}
    Permit(Permit&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (admission_ != nullptr) admission_->Leave();
    }

   private:
    Admission* admission_;
  };

  // Borrows both.
  Admission(const Options& options, metrics::Registry& metrics, const base::Clock& clock);

  // Waits for a permit. Errors: ResourceExhausted (too many wait already, or max_wait has passed), DeadlineExceeded,
  // Cancelled (stop), Unavailable (closed).
  absl::StatusOr<Permit> Enter(std::stop_token stop, base::SteadyTime deadline);
  // From now on nobody enters; those that wait are told so.
  void Close();
  // Waits until nobody is inside; false when that took longer than `timeout`.
  bool WaitIdle(base::nanoseconds timeout);

  int running() const;
  int waiting() const;

 private:
  void Leave();
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const base::Clock& clock_;
  metrics::Gauge& running_gauge_;
  metrics::Gauge& waiting_gauge_;
  metrics::Histogram& wait_seconds_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<uint64_t> queue_ ABSL_GUARDED_BY(mutex_);  // tickets of those that wait, in their order
};

}  // namespace medley::sched
