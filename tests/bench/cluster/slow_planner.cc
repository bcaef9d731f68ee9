#include "tests/bench/cluster/slow_planner.h"

#include <grpcpp/grpcpp.h>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"

namespace medley::bench {
namespace {

namespace sched_pb = scheduler::v1;

constexpr base::milliseconds kLook{50};  // how often a held plan looks whether it was cancelled

}  // namespace

class SlowPlanner::Service final : public sched_pb::SchedulerService::Service {
 public:
  Service(const std::string& address, base::Clock& clock)
      : clock_(clock), next_(sched_pb::SchedulerService::NewStub(rpc::MakeChannel(address, {}))) {}

  grpc::Status Plan(grpc::ServerContext* context, const sched_pb::PlanRequest* request,
                    sched_pb::PlanResponse* response) override {
    Hold(*context);
    const auto forward = grpc::ClientContext::FromServerContext(*context);
    return next_->Plan(forward.get(), *request, response);
  }
  grpc::Status Observe(grpc::ServerContext* context, const sched_pb::ObserveRequest* request,
                       sched_pb::ObserveResponse* response) override {
    const auto forward = grpc::ClientContext::FromServerContext(*context);
    return next_->Observe(forward.get(), *request, response);
  }
  grpc::Status WatchCatalog(grpc::ServerContext* context, const sched_pb::WatchCatalogRequest* request,
                            grpc::ServerWriter<sched_pb::WatchCatalogResponse>* writer) override {
    const auto forward = grpc::ClientContext::FromServerContext(*context);
    const auto reader = next_->WatchCatalog(forward.get(), *request);
    sched_pb::WatchCatalogResponse response;
    while (reader->Read(&response) && writer->Write(response)) {
    }
    forward->TryCancel();
    return reader->Finish();
  }

  void SetDelay(base::nanoseconds delay) {
    base::MutexLock lock(mutex_);
    delay_ = delay;
    changed_.NotifyAll();
  }
  int held() const {
    base::MutexLock lock(mutex_);
    return held_;
  }

 private:
  void Hold(const grpc::ServerContext& context) {
    const base::SteadyTime begin = clock_.Steady();
    base::MutexLock lock(mutex_);
    ++held_;
    const auto is_over = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return clock_.Steady() - begin >= delay_ || context.IsCancelled();
    };
    while (!is_over()) changed_.WaitFor(mutex_, {}, kLook, is_over);
    --held_;
  }

  base::Clock& clock_;
  const std::unique_ptr<sched_pb::SchedulerService::Stub> next_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  base::nanoseconds delay_ ABSL_GUARDED_BY(mutex_){0};
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
};

SlowPlanner::SlowPlanner() = default;
SlowPlanner::~SlowPlanner() { SetDelay(base::nanoseconds(0)); }

absl::StatusOr<std::unique_ptr<SlowPlanner>> SlowPlanner::Start(int port, const std::string& address,
                                                                base::Clock& clock) {
  std::unique_ptr<SlowPlanner> out(new SlowPlanner);
  out->service_ = std::make_unique<Service>(address, clock);
  MEDLEY_ASSIGN_OR_RETURN(out->server_, rpc::Server::Start({.port = port}, {out->service_.get()}));
  return out;
}

void SlowPlanner::SetDelay(base::nanoseconds delay) { service_->SetDelay(delay); }

int SlowPlanner::held() const { return service_->held(); }

}  // namespace medley::bench
