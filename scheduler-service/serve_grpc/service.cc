#include "scheduler-service/serve_grpc/service.h"

#include <algorithm>

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include "common/base/status.h"
#include "common/rpc/status.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "scheduler-service/catalog/catalog_proto.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

// How often an open stream looks whether its client is still there.
constexpr base::milliseconds kWatchPoll{200};
// Share of the caller's time that planning may take; the rest brings the answer home.
constexpr double kPlanningShare = 0.9;

class Service final : public pb::SchedulerService::Service {
 public:
  Service(Handlers& handlers, std::stop_token stop, GrpcServiceOptions options)
      : handlers_(handlers), stop_(std::move(stop)), options_(options) {}

  grpc::Status Plan(grpc::ServerContext* context, const pb::PlanRequest* in, pb::PlanResponse* out) override {
    return rpc::ToGrpc(handlers_.Plan(*in, LimitsOf(*context), *out));
  }
  grpc::Status Provision(grpc::ServerContext*, const pb::ProvisionRequest* in, pb::ProvisionResponse* out) override {
    return rpc::ToGrpc(handlers_.Provision(*in, *out));
  }
  grpc::Status Evaluate(grpc::ServerContext*, const pb::EvaluateRequest* in, pb::EvaluateResponse* out) override {
    return rpc::ToGrpc(handlers_.Evaluate(*in, *out));
  }
  grpc::Status ListPlanners(grpc::ServerContext*, const pb::ListPlannersRequest*,
                            pb::ListPlannersResponse* out) override {
    handlers_.ListPlanners(*out);
    return grpc::Status::OK;
  }
  grpc::Status GetCatalog(grpc::ServerContext*, const pb::GetCatalogRequest*, pb::GetCatalogResponse* out) override {
    handlers_.GetCatalog(*out);
    return grpc::Status::OK;
  }
  grpc::Status WatchCatalog(grpc::ServerContext* context, const pb::WatchCatalogRequest*,
                            grpc::ServerWriter<pb::WatchCatalogResponse>* writer) override {
    grpc::Status status = grpc::Status::OK;
    if (watches_.fetch_add(1) >= options_.max_watches) {
      status = rpc::ToGrpc(base::ResourceExhausted("{} watches are open already", options_.max_watches));
    } else {
      Stream(*context, *writer);
    }
    watches_.fetch_sub(1);
    return status;
  }

 private:
  CallLimits LimitsOf(const grpc::ServerContext& context) const {
    CallLimits limits;
    limits.stop = stop_;
    const gpr_timespec deadline = context.raw_deadline();
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return limits;
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    const double seconds = static_cast<double>(left.tv_sec) + 1e-9 * left.tv_nsec;
    if (seconds < 1e8) {
      limits.deadline = handlers_.clock().Steady() + base::FromSeconds(std::max(0.0, seconds) * kPlanningShare);
    }
    return limits;
  }

  void Stream(grpc::ServerContext& context, grpc::ServerWriter<pb::WatchCatalogResponse>& writer) {
    int64_t sent = -1;  // the first message comes at once, also of an empty catalog
    while (!stop_.stop_requested() && !context.IsCancelled()) {
      const CatalogSnapshot catalog = handlers_.catalog().WaitNewer(sent, stop_, kWatchPoll);
      if (catalog == nullptr) continue;
      pb::WatchCatalogResponse response;
      CatalogToProto(*catalog, *response.mutable_catalog());
      if (!writer.Write(response)) return;
      sent = catalog->revision;
    }
  }

  Handlers& handlers_;
  const std::stop_token stop_;
  const GrpcServiceOptions options_;
  std::atomic<int> watches_{0};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcService(Handlers& handlers, std::stop_token stop, GrpcServiceOptions options) {
  return std::make_unique<Service>(handlers, std::move(stop), options);
}

}  // namespace medley::sched
