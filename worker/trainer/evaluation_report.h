// Reports that an evaluation makes progress, at most once a second, so that the coordinator can tell a long evaluation
// from one that hangs. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

class EvaluationReport {
 public:
  EvaluationReport(const job::v1::Evaluate& order, const base::Clock& clock,
                   std::function<void(job::v1::SessionRequest)> send)
      : clock_(clock), send_(std::move(send)), last_(clock.Steady()) {
    message_.mutable_evaluating()->set_generation(order.generation());
    message_.mutable_evaluating()->set_step(order.step());
  }

  // Something more has been read, scored or written.
  void Progressed() {
    {
      base::MutexLock lock(mutex_);
      if (clock_.Steady() - last_ < base::seconds(1)) return;
      last_ = clock_.Steady();
    }
    send_(message_);
  }

 private:
  const base::Clock& clock_;
  const std::function<void(job::v1::SessionRequest)> send_;
  job::v1::SessionRequest message_;  // constant after construction
  base::Mutex mutex_;
  base::SteadyTime last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker
