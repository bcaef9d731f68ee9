#include "scheduler-service/handlers/admission.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr int kForTiny = 2;
constexpr int kTinyWaiting = 256;  // as many as there are connections; each takes about a millisecond

}  // namespace

Admission::Options Admission::ForClasses(int concurrent, int max_waiting, base::nanoseconds max_wait) {
  return {.max_running = std::max(concurrent, 2),
          .max_expensive = std::max(concurrent / 2, 1),
          .for_tiny = kForTiny,
          .for_operator = 1,
          .max_waiting = max_waiting,
          .tiny_waiting = max_waiting > 0 ? kTinyWaiting : 0,
          .max_wait = max_wait};
}

Admission::Admission(const Options& options, metrics::Registry* metrics, const base::Clock& clock)
    : options_(options), clock_(clock) {
  if (metrics == nullptr) return;
  running_gauge_ = &metrics->GetGauge("medley_scheduler_requests_in_flight", "Requests that are being processed");
  waiting_gauge_ = &metrics->GetGauge("medley_scheduler_requests_waiting", "Requests that wait in the queue");
  wait_seconds_ = &metrics->GetHistogram("medley_scheduler_wait_seconds", "Time that a request waited in the queue",
                                         metrics::LatencyBounds());
  for (int i = 0; i < kCostClasses; ++i) {
    lanes_[static_cast<size_t>(i)].running_gauge =
        &metrics->GetGauge("medley_scheduler_class_in_flight", "Requests that are being processed, by class of cost",
                           {{"class", NameOf(static_cast<CostClass>(i))}});
  }
}

bool Admission::HasPlace(CostClass cost) const {
  const auto running = [this](CostClass of) { return lanes_[static_cast<size_t>(of)].running; };
  const int expensive = running(CostClass::kExpensive);
  const int large = running(CostClass::kCheap) + expensive;
  const int shared = running(CostClass::kTiny) + large;
  const int most = options_.max_running + options_.for_tiny;
  if (Running() >= most + options_.for_operator) return false;
  if (cost == CostClass::kOperator) return true;
  if (shared >= most) return false;
  if (cost == CostClass::kTiny) return true;
  return large < options_.max_running && (cost == CostClass::kCheap || expensive < options_.max_expensive);
}

int Admission::MaxWaiting(CostClass cost) const {
  return cost == CostClass::kTiny ? std::max(options_.max_waiting, options_.tiny_waiting) : options_.max_waiting;
}

bool Admission::IsOvertaken(CostClass cost) const {
  for (int i = 0; i < static_cast<int>(cost); ++i) {
    const auto earlier = static_cast<CostClass>(i);
    if (!lanes_[static_cast<size_t>(i)].queue.empty() && HasPlace(earlier)) return true;
  }
  return false;
}

absl::StatusOr<Admission::Permit> Admission::Enter(Cost given, std::stop_token stop, base::SteadyTime deadline) {
  const CostClass cost = given.cost;
  const base::SteadyTime begin = clock_.Steady();
  base::MutexLock lock(mutex_);
  if (closed_) return base::Unavailable("the service is stopping");
  Lane& lane = LaneOf(cost);
  if (!HasPlace(cost) || !lane.queue.empty() || IsOvertaken(cost)) {
    if (lane.queue.size() >= static_cast<size_t>(MaxWaiting(cost))) {
      return base::ResourceExhausted(
          "{} requests are being processed and {} of class {} wait in the queue: try again later", Running(),
          lane.queue.size(), NameOf(cost));
    }
    const std::pair<int64_t, uint64_t> ticket{given.weight, next_ticket_++};
    lane.queue.insert(ticket);
    Show();
    const base::SteadyTime patience = std::min(deadline, begin + options_.max_wait);
    const bool turn = changed_.WaitUntil(mutex_, stop, patience, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return closed_ || (*lane.queue.begin() == ticket && HasPlace(cost) && !IsOvertaken(cost));
    });
    lane.queue.erase(ticket);
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
  ++lane.running;
  Show();
  if (wait_seconds_ != nullptr) wait_seconds_->Observe(base::ToSeconds(clock_.Steady() - begin));
  return Permit(this, cost);
}

void Admission::Leave(CostClass cost) {
  base::MutexLock lock(mutex_);
  --LaneOf(cost).running;
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
  return changed_.WaitFor(mutex_, {}, timeout, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return Running() == 0; });
}

int Admission::Running() const {
  int sum = 0;
  for (const Lane& lane : lanes_) sum += lane.running;
  return sum;
}

int Admission::Waiting() const {
  size_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.queue.size();
  return static_cast<int>(sum);
}

int Admission::running() const {
  base::MutexLock lock(mutex_);
  return Running();
}

int Admission::waiting() const {
  base::MutexLock lock(mutex_);
  return Waiting();
}

void Admission::Show() {
  if (running_gauge_ == nullptr) return;
  running_gauge_->Set(Running());
  waiting_gauge_->Set(Waiting());
  for (const Lane& lane : lanes_) lane.running_gauge->Set(lane.running);
}

}  // namespace medley::sched
