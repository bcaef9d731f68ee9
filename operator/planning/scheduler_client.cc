#include "operator/planning/scheduler_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/observation.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/prediction.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"

namespace medley::ops {
namespace {

namespace sched_pb = scheduler::v1;

PriceCatalog FromProto(const sched_pb::Catalog& in) {
  PriceCatalog catalog{in.revision(), model::TimeFromProto(in.price_time()), {}};
  for (const sched_pb::CatalogEntry& e : in.entries()) {
    PriceEntry entry;
    if (e.has_offering() && !e.offering().instance_type().empty()) {
      const sched_pb::Offering& o = e.offering();
      entry.offering = model::Offering{o.provider(),      o.region(),        o.zone(),
                                       o.instance_type(), o.capacity_type(), o.units_per_instance()};
    }
    entry.resource_type = e.resource_type();
    entry.usd_per_instance_hour = e.price_per_instance_hour();
    entry.usd_per_unit_hour = e.price_per_unit_hour();
    entry.source = e.source();
    entry.available = e.available();
    catalog.entries.push_back(std::move(entry));
  }
  return catalog;
}

// The service believes this of the operator only.
void SpeakFor(const std::string& tenant, grpc::ClientContext& context) {
  if (!tenant.empty()) context.AddMetadata("x-medley-tenant", tenant);
}

}  // namespace

SchedulerClient::SchedulerClient(Options options, base::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      channel_(rpc::MakeChannel(options_.address, {.tls = options_.tls})) {}

SchedulerClient::~SchedulerClient() { Stop(); }

void SchedulerClient::Start(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  thread_ = std::jthread([this](std::stop_token stop) { Follow(stop); });
}

void SchedulerClient::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

absl::StatusOr<model::PlanResult> SchedulerClient::Plan(const model::PlanRequest& request, const std::string& tenant,
                                                        std::stop_token stop) {
  sched_pb::PlanRequest proto;
  model::ToProto(request, proto);
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = options_.token,
                         .timeout = base::FromSeconds(request.planner.time_budget_seconds) + options_.plan_slack});
  SpeakFor(tenant, context);
  rpc::StopCancelsCall guard(context, std::move(stop));
  sched_pb::PlanResponse response;
  const auto stub = sched_pb::SchedulerService::NewStub(channel_);
  MEDLEY_RETURN_IF_ERROR(
      rpc::FromGrpc(stub->Plan(&context, proto, &response), "scheduling service " + options_.address + ": Plan"));
  return model::FromProto(response);
}

absl::StatusOr<model::Prediction> SchedulerClient::Observe(const model::JobObservation& observation,
                                                           const std::string& tenant, std::stop_token stop) {
  sched_pb::ObserveRequest proto;
  model::ToProto(observation, proto);
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = options_.token, .timeout = options_.observe_timeout});
  SpeakFor(tenant, context);
  rpc::StopCancelsCall guard(context, std::move(stop));
  sched_pb::ObserveResponse response;
  const auto stub = sched_pb::SchedulerService::NewStub(channel_);
  MEDLEY_RETURN_IF_ERROR(
      rpc::FromGrpc(stub->Observe(&context, proto, &response), "scheduling service " + options_.address + ": Observe"));
  return model::FromProto(response.prediction());
}

std::shared_ptr<const PriceCatalog> SchedulerClient::catalog() const {
  base::MutexLock lock(mutex_);
  return catalog_;
}

bool SchedulerClient::connected() const {
  base::MutexLock lock(mutex_);
  return connected_;
}

void SchedulerClient::SetConnected(bool connected) {
  {
    base::MutexLock lock(mutex_);
    if (connected_ == connected) return;
    connected_ = connected;
  }
  base::log::Info(connected ? "scheduling service connected" : "scheduling service is unavailable",
                  {{"address", options_.address}});
  if (on_change_) on_change_();
}

bool SchedulerClient::FollowOnce(std::stop_token stop) {
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = options_.token});
  rpc::StopCancelsCall guard(context, std::move(stop));
  const auto stub = sched_pb::SchedulerService::NewStub(channel_);
  auto reader = stub->WatchCatalog(&context, sched_pb::WatchCatalogRequest());
  sched_pb::WatchCatalogResponse response;
  bool heard = false;
  while (reader->Read(&response)) {
    heard = true;
    {
      base::MutexLock lock(mutex_);
      catalog_ = std::make_shared<const PriceCatalog>(FromProto(response.catalog()));
      connected_ = true;
    }
    if (on_change_) on_change_();
  }
  const absl::Status ended = rpc::FromGrpc(reader->Finish());
  base::log::Debug("the stream of the price catalog ended", {{"status", base::ToString(ended)}});
  return heard;
}

void SchedulerClient::Follow(std::stop_token stop) {
  base::Backoff backoff({.first = base::milliseconds(200), .max = base::seconds(10)}, options_.seed);
  while (!stop.stop_requested()) {
    if (FollowOnce(stop)) backoff.Reset();
    if (stop.stop_requested()) return;
    SetConnected(false);
    rpc::PauseBeforeCallingAgain(*channel_, clock_, backoff.Next(), stop);
  }
}

bool IsSchedulerAway(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kCancelled || status.code() == absl::StatusCode::kResourceExhausted;
}

}  // namespace medley::ops
