#include "operator/planning/observation_stream.h"

#include <grpcpp/channel.h>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"

namespace medley::ops {
namespace {

constexpr base::Backoff::Options kBackoff{.first = base::milliseconds(200), .max = base::seconds(5)};

}  // namespace

StreamLoop::StreamLoop()
    : thread_([this] {
        void* stream = nullptr;
        bool ok = false;
        while (queue_.Next(&stream, &ok)) static_cast<ObservationStream*>(stream)->Proceed(ok);
      }) {}

StreamLoop::~StreamLoop() { queue_.Shutdown(); }

ObservationStream::ObservationStream(StreamLoop& loop, std::shared_ptr<grpc::Channel> channel, std::string token,
                                     uint64_t seed, OnObservation on_observation)
    : loop_(loop),
      stub_(job::v1::CoordinatorService::NewStub(std::move(channel))),
      token_(std::move(token)),
      on_observation_(std::move(on_observation)),
      backoff_(kBackoff, seed) {
  base::MutexLock lock(mutex_);
  Call();
}

ObservationStream::~ObservationStream() {
  base::MutexLock lock(mutex_);
  stopping_ = true;
  if (context_) context_->TryCancel();
  alarm_.Cancel();
  changed_.Wait(mutex_, {}, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return doing_ == Doing::kNothing; });
}

void ObservationStream::Proceed(bool ok) {
  bool read = false;
  {
    base::MutexLock lock(mutex_);
    read = doing_ == Doing::kRead && ok && !stopping_;
  }
  if (read) Hear();
  base::MutexLock lock(mutex_);
  switch (doing_) {
    case Doing::kCall:
    case Doing::kRead:
      if (ok && !stopping_) return Read();
      return Finish();
    case Doing::kFinish:
      log::Debug("observation stream ended", {{"status", base::ToString(rpc::FromGrpc(status_))}});
      reader_.reset();
      context_.reset();
      if (!stopping_) return Pause();
      break;
    case Doing::kPause:
      if (!stopping_) return Call();
      break;
    case Doing::kNothing: break;
  }
  doing_ = Doing::kNothing;
  changed_.NotifyAll();
}

void ObservationStream::Hear() {
  const bool first = !std::exchange(heard_, true);
  on_observation_(response_.observation(), first);
}

void ObservationStream::Call() {
  doing_ = Doing::kCall;
  heard_ = false;
  context_.emplace();
  rpc::Prepare(*context_, {.token = token_, .wait_for_ready = true});
  reader_ = stub_->PrepareAsyncWatchObservations(&*context_, job::v1::WatchObservationsRequest(), &loop_.queue());
  reader_->StartCall(this);
}

void ObservationStream::Read() {
  doing_ = Doing::kRead;
  reader_->Read(&response_, this);
}

void ObservationStream::Finish() {
  doing_ = Doing::kFinish;
  reader_->Finish(&status_, this);
}

void ObservationStream::Pause() {
  doing_ = Doing::kPause;
  if (heard_) backoff_.Reset();
  const auto pause = std::chrono::duration_cast<std::chrono::system_clock::duration>(backoff_.Next());
  alarm_.Set(&loop_.queue(), std::chrono::system_clock::now() + pause, this);
}

}  // namespace medley::ops
