#include "operator/planning/observation_stream.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <optional>
#include <thread>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::ops {
namespace {

namespace pb = job::v1;

constexpr base::Backoff::Options kBackoff{.first = base::milliseconds(200), .max = base::seconds(5)};

}  // namespace

// Exactly one asynchronous operation is in flight. When it ends, the loop's thread calls Proceed, which handles the
// result and starts the next operation. That thread also starts the call, so only one thread uses the call.
class ObservationStream::Steps {
 public:
  Steps(grpc::CompletionQueue& queue, const std::shared_ptr<grpc::Channel>& channel, std::string token, uint64_t seed,
        OnObservation on_observation)
      : queue_(queue),
        stub_(pb::CoordinatorService::NewStub(channel)),
        token_(std::move(token)),
        on_observation_(std::move(on_observation)),
        backoff_(kBackoff, seed) {
    base::MutexLock lock(mutex_);
    Pause(base::nanoseconds(0));
  }
  ~Steps() {
    base::MutexLock lock(mutex_);
    stopping_ = true;
    if (context_) context_->TryCancel();
    alarm_.Cancel();
    changed_.Wait(mutex_, {}, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return doing_ == Doing::kNothing; });
  }
  void Proceed(bool ok);

 private:
  enum class Doing { kCall, kRead, kFinish, kPause, kNothing };
  void Call() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(base::nanoseconds pause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::CompletionQueue& queue_;
  const std::unique_ptr<pb::CoordinatorService::Stub> stub_;
  const std::string token_;
  const OnObservation on_observation_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Doing doing_ ABSL_GUARDED_BY(mutex_) = Doing::kNothing;
  base::Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::ClientAsyncReader<pb::WatchObservationsResponse>> reader_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  // Used by gRPC while an operation is in flight, and by the loop's thread after it has ended.
  pb::WatchObservationsResponse response_;
  bool heard_ = false;  // this call has delivered an observation
};

void ObservationStream::Steps::Proceed(bool ok) {
  bool read = false;
  {
    base::MutexLock lock(mutex_);
    read = doing_ == Doing::kRead && ok && !stopping_;
  }
  if (read) {
    const bool first = !std::exchange(heard_, true);
    on_observation_(response_.observation(), first);
  }
  base::MutexLock lock(mutex_);
  switch (doing_) {
    case Doing::kCall:
    case Doing::kRead:
      if (ok && !stopping_) return Read();
      return Finish();
    case Doing::kFinish:
      base::log::Debug("observation stream ended", {{"status", base::ToString(rpc::FromGrpc(status_))}});
      reader_.reset();
      context_.reset();
      if (heard_) backoff_.Reset();
      if (!stopping_) return Pause(backoff_.Next());
      break;
    case Doing::kPause:
      if (!stopping_) return Call();
      break;
    case Doing::kNothing:
      break;
  }
  doing_ = Doing::kNothing;
  changed_.NotifyAll();
}

void ObservationStream::Steps::Call() {
  doing_ = Doing::kCall;
  heard_ = false;
  context_.emplace();
  rpc::Prepare(*context_, {.token = token_, .wait_for_ready = true});
  reader_ = stub_->PrepareAsyncWatchObservations(&*context_, pb::WatchObservationsRequest(), &queue_);
  reader_->StartCall(this);
}

void ObservationStream::Steps::Read() {
  doing_ = Doing::kRead;
  reader_->Read(&response_, this);
}

void ObservationStream::Steps::Finish() {
  doing_ = Doing::kFinish;
  reader_->Finish(&status_, this);
}

void ObservationStream::Steps::Pause(base::nanoseconds pause) {
  doing_ = Doing::kPause;
  const gpr_timespec length = gpr_time_from_nanos(pause.count(), GPR_TIMESPAN);
  alarm_.Set(&queue_, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), length), this);
}

class StreamLoop::Queue {
 public:
  Queue() : thread_([this] { Run(); }) {}
  ~Queue() { queue_.Shutdown(); }
  grpc::CompletionQueue& get() { return queue_; }

 private:
  void Run() {
    void* steps = nullptr;
    bool ok = false;
    while (queue_.Next(&steps, &ok)) static_cast<ObservationStream::Steps*>(steps)->Proceed(ok);
  }
  grpc::CompletionQueue queue_;
  std::jthread thread_;
};

StreamLoop::StreamLoop() : queue_(std::make_unique<Queue>()) {}

StreamLoop::~StreamLoop() = default;

ObservationStream::ObservationStream(StreamLoop& loop, std::shared_ptr<grpc::Channel> channel, std::string token,
                                     uint64_t seed, OnObservation on_observation)
    : steps_(std::make_unique<Steps>(loop.queue_->get(), channel, std::move(token), seed, std::move(on_observation))) {}

ObservationStream::~ObservationStream() = default;

}  // namespace medley::ops
