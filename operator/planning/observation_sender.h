// Sends what jobs measured to the scheduling service, in the background: nothing waits for it, nothing fails with it.
// Thread-safe.
//
// At most one observation a job waits, the newest; at most `capacity` jobs wait, more are dropped and counted. One that
// could not be sent is dropped: the next one tells more. One thread.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "common/model/observation.h"

namespace medley::ops {

class ObservationSender {
 public:
  struct Options {
    size_t capacity = 256;  // jobs
  };
  using Send = std::function<absl::StatusOr<model::Prediction>(const model::JobObservation&, std::stop_token)>;
  // Called from the sender's thread with each answer, and with Dropped's error for one that did not fit.
  using OnAnswer = std::function<void(const absl::StatusOr<model::Prediction>&)>;

  ObservationSender(Options options, Send send, OnAnswer on_answer);
  ~ObservationSender();  // Stop

  void Start();
  void Stop();  // idempotent; joins; what waits is dropped

  // Takes the place of an older one of the same job (job_uid).
  void Offer(model::JobObservation observation);

 private:
  void Run(std::stop_token stop);

  const Options options_;
  const Send send_;
  const OnAnswer on_answer_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, model::JobObservation> waiting_ ABSL_GUARDED_BY(mutex_);  // by job_uid
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;                                   // not told yet
  std::jthread thread_;
};

}  // namespace medley::ops
