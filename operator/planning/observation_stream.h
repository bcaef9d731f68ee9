// The observations of one coordinator: a call that is made again whenever it ends. No thread of its own: a loop
// serves the streams of all jobs, of which there may be thousands.
//
//   Call --connected, started--> Read --an observation--> Read ...
//     ^                           | ended
//     +--- backoff --- Finish <---+
//
// A call waits for a connection, which its channel tries to make with a backoff of its own.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/backoff.h"
#include "common/base/mutex.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::ops {

// One thread that carries on the streams. It outlives them. Thread-safe.
class StreamLoop {
 public:
  StreamLoop();
  ~StreamLoop();
  grpc::CompletionQueue& queue() { return queue_; }

 private:
  grpc::CompletionQueue queue_;
  std::jthread thread_;
};

class ObservationStream {
 public:
  // Called from the loop's thread. `first`: of its call.
  using OnObservation = std::function<void(const job::v1::Observation& observation, bool first)>;
  ObservationStream(StreamLoop& loop, std::shared_ptr<grpc::Channel> channel, std::string token, uint64_t seed,
                    OnObservation on_observation);
  // Cancels and waits until no callback runs; not from a callback.
  ~ObservationStream();
  ObservationStream(const ObservationStream&) = delete;
  ObservationStream& operator=(const ObservationStream&) = delete;

 private:
  friend class StreamLoop;
  enum class Doing { kCall, kRead, kFinish, kPause, kNothing };
  // The one operation in flight has ended. From the loop's thread.
  void Proceed(bool ok);
  void Hear();
  void Call() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StreamLoop& loop_;
  const std::unique_ptr<job::v1::CoordinatorService::Stub> stub_;
  const std::string token_;
  const OnObservation on_observation_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Doing doing_ ABSL_GUARDED_BY(mutex_) = Doing::kNothing;
  base::Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::ClientAsyncReader<job::v1::WatchObservationsResponse>> reader_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  // Written by the call, read by the loop's thread when a read has ended.
  job::v1::WatchObservationsResponse response_;
  bool heard_ = false;  // of this call; of the loop's thread
};

}  // namespace medley::ops
