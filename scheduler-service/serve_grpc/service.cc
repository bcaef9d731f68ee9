#include "scheduler-service/serve_grpc/service.h"

#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>

#include "common/base/status.h"
#include "common/rpc/decode.h"
#include "common/rpc/status.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "scheduler-service/serve_grpc/cancel_watcher.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

// How often an open stream checks whether its client is still connected.
constexpr base::milliseconds kWatchPoll{200};
// The share of the caller's time that planning may take; the rest is for sending the response.
constexpr double kPlanningShare = 0.9;
constexpr char kRetryAfterSeconds[] = "1";
constexpr size_t kMaxTenantBytes = 253;
// Messages that are received at the same time.
constexpr int kReceiving = 8;
constexpr int kReceivingOfOperator = 2;
constexpr int kWaitToReceive =
    1000;  // about as many as the server has threads: it refuses nobody who would wait briefly
constexpr base::seconds kReceivingWait{5};

std::string_view Metadata(const grpc::ServerContext& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

class Service final : public pb::SchedulerService::Service {
 public:
  Service(Handlers& handlers, RequestIds& ids, std::stop_token drain, std::stop_token stop, GrpcServiceOptions options)
      : handlers_(handlers),
        ids_(ids),
        drain_(std::move(drain)),
        stop_(std::move(stop)),
        options_(std::move(options)),
        receiving_({.max_running = kReceiving,
                    .max_expensive = 0,
                    .for_operator = kReceivingOfOperator,
                    .max_waiting = kWaitToReceive,
                    .max_wait = kReceivingWait},
                   nullptr, handlers.clock()) {
    Answer("Plan", &Handlers::Plan);
    Answer("Pareto", &Handlers::Pareto);
    Answer("Provision", &Handlers::Provision);
    Answer("Evaluate", &Handlers::Evaluate);
    Answer("Simulate", &Handlers::Simulate);
    Answer("Profile", &Handlers::Profile);
    Answer("Observe", &Handlers::Observe);
    Answer("ListHardware", &Handlers::ListHardware);
    Answer("ListPlanners", &Handlers::ListPlanners);
    Answer("GetCatalog", &Handlers::GetCatalog);
    Answer("ListPrices", &Handlers::ListPrices);
  }

  grpc::Status WatchCatalog(grpc::ServerContext* context, const pb::WatchCatalogRequest*,
                            grpc::ServerWriter<pb::WatchCatalogResponse>* writer) override {
    Call call;
    if (const grpc::Status refused = Begin(*context, call); !refused.ok()) return refused;
    absl::Status status;
    if (watches_.fetch_add(1) >= options_.max_watches) {
      status = base::ResourceExhausted("{} catalog watches are open already, which is the maximum: try again later",
                                       options_.max_watches);
    } else {
      call.stop = drain_;
      Stream(*context, call, *writer);
    }
    watches_.fetch_sub(1);
    return End(*context, status);
  }

 private:
  using Streamer = grpc::ServerUnaryStreamer<grpc::ByteBuffer, grpc::ByteBuffer>;

  // Lets `handler` answer the method. gRPC's own unary handlers read and parse the message before anything of ours is
  // called.
  // These read it after the token was checked, and parse it in one of the few places for that. Clients see no
  // difference.
  template <typename In, typename Out>
  void Answer(const char* name, absl::Status (Handlers::*handler)(const In&, Call&, Out&)) {
    const auto* const service = In::descriptor()->file()->FindServiceByName("SchedulerService");
    MarkMethodStreamed(service->FindMethodByName(name)->index(),
                       new grpc::internal::StreamedUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                           [this, name, handler](grpc::ServerContext* context, Streamer* streamer) {
                             return Run(*context, *streamer, name, handler);
                           }));
  }

  template <typename In, typename Out>
  grpc::Status Run(grpc::ServerContext& context, Streamer& streamer, const char* name,
                   absl::Status (Handlers::*handler)(const In&, Call&, Out&)) {
    Call call;
    if (grpc::Status refused = Begin(context, call); !refused.ok()) return refused;
    CancelWatcher::Watch watch(cancelled_, context, stop_);
    call.stop = watch.token();
    In in;
    if (const absl::Status status = Receive(streamer, watch, call, in); !status.ok()) {
      handlers_.record().Answered(name, call, status, 0);
      return End(context, status);
    }
    Out out;
    const absl::Status status = (handlers_.*handler)(in, call, out);
    if (!status.ok()) return End(context, status);
    const grpc::Slice bytes(out.SerializeAsString());
    streamer.Write(grpc::ByteBuffer(&bytes, 1));
    return grpc::Status::OK;
  }

  // Errors: InvalidArgument, those of Admission.
  absl::Status Receive(Streamer& streamer, CancelWatcher::Watch& watch, const Call& call,
                       google::protobuf::Message& in) {
    MEDLEY_ASSIGN_OR_RETURN(
        const Admission::Permit place,
        receiving_.Enter(call.from_operator ? CostClass::kOperator : CostClass::kCheap, call.stop, call.deadline));
    watch.CancelAt(handlers_.clock().Steady() + options_.receive);
    grpc::ByteBuffer buffer;
    if (!streamer.Read(&buffer)) {
      return base::ResourceExhausted(
          "the message cannot be received: it is larger than this service accepts, or incomplete");
    }
    watch.CancelAt(base::SteadyTime::max());
    grpc::Slice whole;
    if (!buffer.DumpToSingleSlice(&whole).ok()) return base::InvalidArgument("the message cannot be read");
    buffer.Clear();
    Cost cost = CostOfReading(whole.size());
    if (call.from_operator) cost.cost = CostClass::kOperator;
    MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit, handlers_.parsing().Enter(cost, call.stop, call.deadline));
    return rpc::Decode({reinterpret_cast<const char*>(whole.begin()), whole.size()}, in);
  }

  // Sets request ID and deadline of the call, and authenticates the caller.
  grpc::Status Begin(grpc::ServerContext& context, Call& call) {
    call.id = ids_.Choose(Metadata(context, "x-request-id"));
    context.AddTrailingMetadata("x-request-id", call.id);
    const std::string_view authorization = Metadata(context, "authorization");
    if (!options_.tokens.Allow(authorization)) {
      const absl::Status refused = base::Unauthenticated("the call has no valid bearer token");
      handlers_.record().Answered("unauthenticated", call, refused, 0);
      return rpc::ToGrpc(refused);
    }
    call.from_operator = options_.tokens.FromOperator(authorization);
    call.tenant = options_.tokens.TenantOf(authorization);
    // The operator speaks for the namespaces of its jobs.
    if (const std::string_view name = Metadata(context, "x-medley-tenant"); call.from_operator && !name.empty()) {
      call.tenant = "namespace " + std::string(name.substr(0, kMaxTenantBytes));
    }
    const gpr_timespec deadline = context.raw_deadline();
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return grpc::Status::OK;
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    const double seconds = static_cast<double>(left.tv_sec) + 1e-9 * left.tv_nsec;
    if (seconds < 1e8) {
      call.deadline = handlers_.clock().Steady() + base::FromSeconds(std::max(0.0, seconds) * kPlanningShare);
    }
    return grpc::Status::OK;
  }

  static grpc::Status End(grpc::ServerContext& context, const absl::Status& status) {
    if (absl::IsResourceExhausted(status)) context.AddTrailingMetadata("retry-after", kRetryAfterSeconds);
    return rpc::ToGrpc(status);
  }

  void Stream(grpc::ServerContext& context, const Call& call, grpc::ServerWriter<pb::WatchCatalogResponse>& writer) {
    int64_t sent = -1;  // send the current catalog at once, even if it is empty
    while (!drain_.stop_requested() && !context.IsCancelled()) {
      pb::WatchCatalogResponse response;
      if (!handlers_.NextCatalog(sent, kWatchPoll, call, response).ok()) continue;
      if (!writer.Write(response)) return;
      sent = response.catalog().revision();
    }
  }

  Handlers& handlers_;
  RequestIds& ids_;
  const std::stop_token drain_;
  const std::stop_token stop_;
  const GrpcServiceOptions options_;
  CancelWatcher cancelled_;
  Admission receiving_;  // bounds the bytes of messages that are being received
  std::atomic<int> watches_{0};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcService(Handlers& handlers, RequestIds& ids, std::stop_token drain,
                                               std::stop_token stop, GrpcServiceOptions options) {
  return std::make_unique<Service>(handlers, ids, std::move(drain), std::move(stop), std::move(options));
}

}  // namespace medley::sched
