// Limits how many requests run at the same time and how many wait in a queue, for each class of cost.
//
//   MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit, admission.Enter({CostClass::kCheap, 16}, stop, deadline));
//   ... the work; destroying `permit` lets the next request run
//
// Within a class the lightest is served first, of equal weight the one that came first; a waiting request of an earlier
// class is served before one of a later class.
// Thread-safe. Permits must not outlive the Admission.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <set>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "scheduler-service/handlers/cost_class.h"

namespace medley::sched {

class Admission {
 public:
  struct Options {
    int max_running = 4;    // cheap and expensive requests
    int max_expensive = 4;  // of them: expensive requests
    int for_tiny = 0;       // further ones, only for tiny requests, which may use those above as well
    int for_operator = 0;   // further ones, only for requests of the operator, which may use all others as well
    int max_waiting = 16;   // of each class
    int tiny_waiting = 0;   // of tiny requests, if it is more
    base::nanoseconds max_wait = base::seconds(1);
  };
  // The places of a service that processes `concurrent` requests at the same time: expensive ones use at most half of
  // them, one is always left to cheap ones, tiny ones have two more and a long queue, and the operator has one more.
  static Options ForClasses(int concurrent, int max_waiting, base::nanoseconds max_wait);

  class Permit {
   public:
    Permit(Admission* admission, CostClass cost) : admission_(admission), cost_(cost) {}
    Permit(Permit&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)), cost_(other.cost_) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (admission_ != nullptr) admission_->Leave(cost_);
    }

   private:
    Admission* admission_;
    CostClass cost_;
  };

  // Borrows `metrics` and `clock`. `metrics` null: not measured.
  Admission(const Options& options, metrics::Registry* metrics, const base::Clock& clock);

  // Waits for a permit. Errors: ResourceExhausted (the queue is full, or max_wait has passed), DeadlineExceeded,
  // Cancelled (stop), Unavailable (closed).
  absl::StatusOr<Permit> Enter(Cost cost, std::stop_token stop, base::SteadyTime deadline);
  absl::StatusOr<Permit> Enter(CostClass cost, std::stop_token stop, base::SteadyTime deadline) {
    return Enter(Cost{cost, 0}, std::move(stop), deadline);
  }
  // From now on, Enter returns Unavailable, also for requests that wait.
  void Close();
  // Waits until no request runs; returns false after `timeout`.
  bool WaitIdle(base::nanoseconds timeout);

  int running() const;  // of all classes
  int waiting() const;

 private:
  struct Lane {  // of a class
    int running = 0;
    std::set<std::pair<int64_t, uint64_t>> queue;  // weights and tickets of waiting requests
    metrics::Gauge* running_gauge = nullptr;
  };

  Lane& LaneOf(CostClass cost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return lanes_[static_cast<size_t>(cost)]; }
  int MaxWaiting(CostClass cost) const;
  bool HasPlace(CostClass cost) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a request of an earlier class could take the next place.
  bool IsOvertaken(CostClass cost) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Running() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(CostClass cost);
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const base::Clock& clock_;
  metrics::Gauge* running_gauge_ = nullptr;
  metrics::Gauge* waiting_gauge_ = nullptr;
  metrics::Histogram* wait_seconds_ = nullptr;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::array<Lane, kCostClasses> lanes_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::sched
