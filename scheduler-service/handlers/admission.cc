#include "scheduler-service/handlers/admission.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::sched {

Admission::Admission(const Options& options, metrics::Registry& metrics, const base::Clock& clock)
    : options_(options),
      clock_(clock),
      running_gauge_(metrics.GetGauge("medley_scheduler_requests_in_flight", "Requests that are being processed")),
      waiting_gauge_(metrics.GetGauge("medley_scheduler_requests_waiting", "Requests that wait in the queue")),
      wait_seconds_(metrics.GetHistogram("medley_scheduler_wait_seconds", "Time that a request waited in the queue",
                                         metrics::LatencyBounds())) {}

absl::StatusOr<Admission::Permit> Admission::Enter(std::stop_token stop, base::SteadyTime deadline) {
  const base::SteadyTime begin = clock_.Steady();
  base::MutexLock lock(mutex_);
  if (closed_) return base::Unavailable("the service is stopping");
  if (running_ >= options_.max_running || !queue_.empty()) {
    if (queue_.size() >= static_cast<size_t>(options_.max_waiting)) {
      return base::ResourceExhausted("{} requests are being processed and {} wait in the queue: try again later",
                                     running_, queue_.size());
    }
    const uint64_t ticket = next_ticket_++;
    queue_.push_back(ticket);
    Show();
    const base::SteadyTime patience = std::min(deadline, begin + options_.max_wait);
    const bool turn = changed_.WaitUntil(mutex_, stop, patience, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return closed_ || (running_ < options_.max_running && queue_.front() == ticket);
    });
    queue_.erase(std::find(queue_.begin(), queue_.end(), ticket));
    changed_.NotifyAll();  // another request may be first now
    Show();
    if (closed_) return base::Unavailable("the service is stopping");
    if (stop.stop_requested())
      return base::MakeStatus(absl::StatusCode::kCancelled, "the caller cancelled the request");
    if (!turn && patience == deadline)
      return base::DeadlineExceeded("the deadline passed while the request waited in the queue");
    if (!turn) {
      return base::ResourceExhausted("the request waited in the queue for {} s: try again later",
                                     base::ToSeconds(options_.max_wait));
    }
  }
  ++running_;
  Show();
  wait_seconds_.Observe(base::ToSeconds(clock_.Steady() - begin));
  return Permit(this);
}

void Admission::Leave() {
  base::MutexLock lock(mutex_);
  --running_;
  Show();
  changed_.NotifyAll();
}

void Admission::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

bool Admission::WaitIdle(base::nanoseconds timeout) {
  base::MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, {}, timeout, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ == 0; });
}

int Admission::running() const {
  base::MutexLock lock(mutex_);
  return running_;
}

int Admission::waiting() const {
  base::MutexLock lock(mutex_);
  return static_cast<int>(queue_.size());
}

void Admission::Show() {
  running_gauge_.Set(running_);
  waiting_gauge_.Set(static_cast<double>(queue_.size()));
}

}  // namespace medley::sched
