// Sends jobs' measurements to the scheduling service in the background. Best effort: callers never wait, and a failure
// here never affects a job. Thread-safe. One thread.
//
// Keeps the newest unsent observation of each job, for at most `capacity` jobs; further ones are dropped and counted.
// An observation that could not be sent is dropped, because the job's next observation replaces it.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "common/model/forward.h"
#include "common/model/prediction.h"

namespace medley::ops {

class ObservationSender {
 public:
  struct Options {
    size_t capacity = 256;  // jobs
  };
  using Send = std::function<absl::StatusOr<model::Prediction>(const model::JobObservation&, const std::string& tenant,
                                                               std::stop_token)>;
  // Called from the sender's thread with the response to each observation, and with ResourceExhausted for each dropped
  // one.
  using OnAnswer = std::function<void(const absl::StatusOr<model::Prediction>&)>;

  ObservationSender(Options options, Send send, OnAnswer on_answer);
  ~ObservationSender();  // Stop

  void Start();
  void Stop();  // idempotent; joins the thread and drops unsent observations

  // Replaces an unsent older observation of the same job (job_uid). `tenant`: the job's namespace.
  void Offer(std::shared_ptr<const model::JobObservation> observation, std::string tenant);

 private:
  struct Waiting;  // an observation and its tenant
  void Run(std::stop_token stop);

  const Options options_;
  const Send send_;
  const OnAnswer on_answer_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, std::unique_ptr<Waiting>> waiting_ ABSL_GUARDED_BY(mutex_);  // by job_uid
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;                                      // not yet reported to on_answer_
  std::jthread thread_;
};

}  // namespace medley::ops
