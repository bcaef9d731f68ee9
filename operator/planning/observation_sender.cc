#include "operator/planning/observation_sender.h"

#include "common/base/status.h"
#include "common/model/observation.h"

namespace medley::ops {

struct ObservationSender::Waiting {
  std::shared_ptr<const model::JobObservation> observation;
  std::string tenant;
};

ObservationSender::ObservationSender(Options options, Send send, OnAnswer on_answer)
    : options_(options), send_(std::move(send)), on_answer_(std::move(on_answer)) {}

ObservationSender::~ObservationSender() { Stop(); }

void ObservationSender::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

void ObservationSender::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void ObservationSender::Offer(std::shared_ptr<const model::JobObservation> observation, std::string tenant) {
  {
    base::MutexLock lock(mutex_);
    const auto found = waiting_.find(observation->job_uid);
    if (found != waiting_.end()) {
      *found->second = {std::move(observation), std::move(tenant)};
    } else if (waiting_.size() < options_.capacity) {
      std::string job = observation->job_uid;
      waiting_.emplace(std::move(job), std::make_unique<Waiting>(Waiting{std::move(observation), std::move(tenant)}));
    } else {
      ++dropped_;
    }
  }
  changed_.NotifyOne();
}

void ObservationSender::Run(std::stop_token stop) {
  while (true) {
    std::unique_ptr<Waiting> next;
    int64_t dropped = 0;
    {
      base::MutexLock lock(mutex_);
      const bool woken = changed_.Wait(
          mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !waiting_.empty() || dropped_ > 0; });
      if (!woken || stop.stop_requested()) return;
      std::swap(dropped, dropped_);
      if (!waiting_.empty()) {
        next = std::move(waiting_.begin()->second);
        waiting_.erase(waiting_.begin());
      }
    }
    for (int64_t i = 0; i < dropped; ++i) {
      on_answer_(base::ResourceExhausted("observation dropped: those of {} jobs are waiting to be sent already",
                                         options_.capacity));
    }
    if (next != nullptr) on_answer_(send_(*next->observation, next->tenant, stop));
  }
}

}  // namespace medley::ops
