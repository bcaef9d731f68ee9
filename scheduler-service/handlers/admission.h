// Limits how many requests run at the same time and how many wait in a queue.
//
//   MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit, admission.Enter(stop, deadline));
//   ... the work; destroying `permit` lets the next request run
//
// First come, first served. Thread-safe. Permits must not outlive the Admission.
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

  // Borrows `metrics` and `clock`.
  Admission(const Options& options, metrics::Registry& metrics, const base::Clock& clock);

  // Waits for a permit. Errors: ResourceExhausted (the queue is full, or max_wait has passed), DeadlineExceeded,
  // Cancelled (stop), Unavailable (closed).
  absl::StatusOr<Permit> Enter(std::stop_token stop, base::SteadyTime deadline);
  // From now on, Enter returns Unavailable, also for requests that wait.
  void Close();
  // Waits until no request runs; returns false after `timeout`.
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
  std::deque<uint64_t> queue_ ABSL_GUARDED_BY(mutex_);  // tickets of waiting requests, in order of arrival
};

}  // namespace medley::sched
