// The fakes of harness.h: a clock, a scheduling service, a coordinator.
#include <grpcpp/grpcpp.h>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/leader_term.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

namespace sched_pb = scheduler::v1;
namespace job_pb = job::v1;

// emb on 2 cpu, the rest on 1 gpu while that is cheap; else everything on 4 cpu.
model::PlanResult DefaultPlan(double gpu_price) {
  const bool mixed = gpu_price > 0 && gpu_price <= 1;
  model::PlanResult result;
  model::ExecutionPlan plan;
  const model::Sync servers{.kind = model::SyncKind::kParameterServer};
  if (mixed) {
    plan.stages = {{{{0, 1}}, {{"cpu", 2, 1}}, {{{{0, 1}}, servers}}, 0}, {{{1, 3}}, {{"gpu", 1, 1}}, {}, 0}};
  } else {
    plan.stages = {{{{0, 3}}, {{"cpu", 4, 1}}, {{{{0, 1}}, servers}}, 0}};
  }
  plan.servers = model::Servers{"cpu", 1};
  plan.schedule.micro_batches = 4;
  const double per_hour = mixed ? 3 * 0.04 + gpu_price : 5 * 0.04;
  plan.estimate = {1000, per_hour, per_hour, 3600, {}};
  plan.provenance.planner = "fake";
  model::ProvisionedPlan provisioned;
  provisioned.stages =
      mixed ? std::vector<model::ProvisionedStage>{{0, 0, "cpu", 2, 1000, 0, 0}, {1, 2, "gpu", 1, 1000, 0, 0}}
            : std::vector<model::ProvisionedStage>{{0, 2, "cpu", 4, 1000, 0, 0}};
  provisioned.server_units = 1;
  provisioned.throughput = 1000;
  provisioned.cost_per_hour = per_hour;
  provisioned.cost_usd = per_hour;
  provisioned.execution_seconds = 3600;
  result.plan = provisioned;
  result.execution_plan = plan;
  result.planner = "fake";
  result.alternatives = {{"cpu only", provisioned, {}}};
  return result;
}

}  // namespace

base::WallTime ShiftedClock::Now() const {
  base::MutexLock lock(mutex_);
  return real_.Now() + std::chrono::duration_cast<base::WallTime::duration>(shift_);
}
base::SteadyTime ShiftedClock::Steady() const {
  base::MutexLock lock(mutex_);
  return real_.Steady() + shift_;
}
bool ShiftedClock::SleepUntil(base::SteadyTime deadline, std::stop_token stop) {
  base::MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const base::nanoseconds left = deadline - (real_.Steady() + shift_);
    if (left <= base::nanoseconds(0)) return true;
    const base::nanoseconds before = shift_;
    changed_.WaitFor(mutex_, stop, left, [&] { return shift_ != before; });
  }
  return false;
}
void ShiftedClock::Advance(base::nanoseconds by) {
  base::MutexLock lock(mutex_);
  shift_ += by;
  changed_.NotifyAll();
}

class FakeScheduler::Service final : public sched_pb::SchedulerService::Service {
 public:
  grpc::Status Plan(grpc::ServerContext*, const sched_pb::PlanRequest* request,
                    sched_pb::PlanResponse* response) override {
    auto parsed = model::FromProto(*request);
    if (!parsed.ok()) return rpc::ToGrpc(parsed.status());
    Planner planner;
    double price = 0;
    {
      base::MutexLock lock(mutex_);
      ++plans_;
      last_ = *parsed;
      planner = planner_;
      price = gpu_price_;
    }
    bool offered = false;
    for (const model::Resource& resource : parsed->resources) {
      if (resource.name != "gpu" || resource.limit <= 0) continue;
      offered = true;
      if (resource.price_per_unit_hour > 0) price = resource.price_per_unit_hour;
    }
    const auto result =
        planner ? planner(*parsed) : absl::StatusOr<model::PlanResult>(DefaultPlan(offered ? price : 0));
    if (!result.ok()) return rpc::ToGrpc(result.status());
    model::ToProto(*result, *response);
    return grpc::Status::OK;
  }

  grpc::Status WatchCatalog(grpc::ServerContext* context, const sched_pb::WatchCatalogRequest*,
                            grpc::ServerWriter<sched_pb::WatchCatalogResponse>* writer) override {
    int64_t sent = -1;
    while (!context->IsCancelled()) {
      sched_pb::WatchCatalogResponse response;
      {
        base::MutexLock lock(mutex_);
        changed_.WaitFor(mutex_, {}, base::milliseconds(20), [&] { return revision_ != sent; });
        if (revision_ == sent) continue;
        sent = revision_;
        Fill(*response.mutable_catalog());
      }
      if (!writer->Write(response)) break;
    }
    return grpc::Status::CANCELLED;
  }

  void Publish(double price, bool available = true) {
    base::MutexLock lock(mutex_);
    gpu_price_ = price;
    available_ = available;
    zones_.clear();
    ++revision_;
    changed_.NotifyAll();
  }
  void PublishZones(std::map<std::string, double> prices) {
    base::MutexLock lock(mutex_);
    zones_ = std::move(prices);
    ++revision_;
    changed_.NotifyAll();
  }
  void SetPlanner(Planner planner) {
    base::MutexLock lock(mutex_);
    planner_ = std::move(planner);
  }
  int plans() const {
    base::MutexLock lock(mutex_);
    return plans_;
  }
  model::PlanRequest last() const {
    base::MutexLock lock(mutex_);
    return last_;
  }

 private:
  void Fill(sched_pb::Catalog& catalog) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    catalog.set_revision(revision_);
    if (!zones_.empty()) {
      for (const auto& [zone, price] : zones_) AddEntry(zone, price, catalog);
    } else if (gpu_price_ > 0) {
      AddEntry("", gpu_price_, catalog);
      catalog.mutable_entries(catalog.entries_size() - 1)->set_available(available_);
    }
  }
  static void AddEntry(const std::string& zone, double price, sched_pb::Catalog& catalog) {
    sched_pb::CatalogEntry& entry = *catalog.add_entries();
    entry.mutable_offering()->set_provider("aws");
    entry.mutable_offering()->set_region("r");
    entry.mutable_offering()->set_zone(zone);
    entry.mutable_offering()->set_instance_type("p3");
    entry.mutable_offering()->set_capacity_type("spot");
    entry.mutable_offering()->set_units_per_instance(1);
    entry.set_price_per_instance_hour(price);
    entry.set_price_per_unit_hour(price);
    entry.set_source("test");
    entry.set_available(true);
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  Planner planner_ ABSL_GUARDED_BY(mutex_);
  double gpu_price_ ABSL_GUARDED_BY(mutex_) = 0.5;
  bool available_ ABSL_GUARDED_BY(mutex_) = true;
  std::map<std::string, double> zones_ ABSL_GUARDED_BY(mutex_);  // prices of zones, in place of gpu_price_
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 1;
  int plans_ ABSL_GUARDED_BY(mutex_) = 0;
  model::PlanRequest last_ ABSL_GUARDED_BY(mutex_);
};

FakeScheduler::FakeScheduler() : service_(std::make_unique<Service>()) {
  Revive();
  port_ = server_->port();
}
FakeScheduler::~FakeScheduler() { Kill(); }
std::string FakeScheduler::address() const { return "127.0.0.1:" + std::to_string(port_); }
void FakeScheduler::SetPlanner(Planner planner) { service_->SetPlanner(std::move(planner)); }
void FakeScheduler::Publish(double gpu_price) { service_->Publish(gpu_price); }
void FakeScheduler::PublishZones(std::map<std::string, double> prices) { service_->PublishZones(std::move(prices)); }
void FakeScheduler::PublishUnavailable(double gpu_price) { service_->Publish(gpu_price, false); }
void FakeScheduler::Kill() { server_.reset(); }
void FakeScheduler::Revive() {
  auto server = rpc::Server::Start({.port = port_}, {service_.get()});
  MEDLEY_CHECK(server.ok(), base::ToString(server.status()));
  server_ = *std::move(server);
}
int FakeScheduler::plans() const { return service_->plans(); }
model::PlanRequest FakeScheduler::last() const { return service_->last(); }

class FakeCoordinator::Service final : public job_pb::CoordinatorService::Service {
 public:
  grpc::Status ApplyPlan(grpc::ServerContext* context, const job_pb::ApplyPlanRequest* request,
                         job_pb::ApplyPlanResponse* response) override {
    if (context->client_metadata().find("authorization") == context->client_metadata().end()) {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no token");
    }
    base::MutexLock lock(mutex_);
    if (grpc::Status status = Fence(request->leader_term()); !status.ok()) return status;
    const int64_t generation = request->plan().generation();
    if (generation < seen_.generation()) return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "older generation");
    if (applied_.empty() || applied_.back().first != generation) applied_.emplace_back(generation, request->reason());
    members_.clear();
    for (const auto& slot : request->slots()) members_.insert(slot.member());
    reason_ = request->reason();
    seen_.set_next_generation(generation);
    if (seen_.phase() == job_pb::JOB_PHASE_UNSPECIFIED) seen_.set_phase(job_pb::JOB_PHASE_WAITING);
    if (seen_.generation() > 0) seen_.set_phase(job_pb::JOB_PHASE_PREPARING);
    if (auto_commit_) CommitLocked();
    Changed();
    response->set_generation(generation);
    return grpc::Status::OK;
  }

  grpc::Status WatchObservations(grpc::ServerContext* context, const job_pb::WatchObservationsRequest*,
                                 grpc::ServerWriter<job_pb::WatchObservationsResponse>* writer) override {
    int64_t sent = -1;
    while (!context->IsCancelled()) {
      job_pb::WatchObservationsResponse response;
      {
        base::MutexLock lock(mutex_);
        changed_.WaitFor(mutex_, {}, base::milliseconds(20), [&] { return version_ != sent; });
        if (version_ == sent) continue;
        sent = version_;
        *response.mutable_observation() = seen_;
      }
      if (!writer->Write(response)) break;
      base::MutexLock lock(mutex_);
      if (response.observation().phase() == job_pb::JOB_PHASE_COMPLETE) read_to_the_end_ = true;
    }
    return grpc::Status::CANCELLED;
  }

  grpc::Status Drain(grpc::ServerContext*, const job_pb::DrainRequest* request, job_pb::DrainResponse*) override {
    base::MutexLock lock(mutex_);
    if (grpc::Status status = Fence(request->leader_term()); !status.ok()) return status;
    drained_.insert(request->members().begin(), request->members().end());
    return grpc::Status::OK;
  }

  grpc::Status Suspend(grpc::ServerContext*, const job_pb::SuspendRequest* request,
                       job_pb::SuspendResponse* response) override {
    base::MutexLock lock(mutex_);
    if (grpc::Status status = Fence(request->leader_term()); !status.ok()) return status;
    ++suspends_;
    seen_.set_phase(job_pb::JOB_PHASE_SUSPENDED);
    Changed();
    response->set_step(seen_.step());
    return grpc::Status::OK;
  }

  // As the real one: see worker/coordinator/core.
  grpc::Status Fence(int64_t term) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (term < seen_.leader_term()) {
      ++refused_;
      return rpc::ToGrpc(model::StaleTerm(term, seen_.leader_term()));
    }
    seen_.set_leader_term(term);
    return grpc::Status::OK;
  }
  void CommitLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (seen_.generation() > 0) {
      job_pb::SwitchRecord& record = *seen_.add_switches();
      record.set_from_generation(seen_.generation());
      record.set_to_generation(seen_.next_generation());
      record.set_reason(reason_);
      record.set_cause(job_pb::SWITCH_CAUSE_PLAN);
      record.set_pause_seconds(0.25);
    }
    seen_.set_generation(seen_.next_generation());
    seen_.set_plan_generation(seen_.next_generation());
    seen_.set_next_generation(0);
    seen_.set_phase(job_pb::JOB_PHASE_TRAINING);
    seen_.set_samples_total(1000000);
    seen_.set_throughput(1000);
  }
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++version_;
    changed_.NotifyAll();
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  job_pb::Observation seen_ ABSL_GUARDED_BY(mutex_);
  bool read_to_the_end_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool auto_commit_ ABSL_GUARDED_BY(mutex_) = true;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int64_t, std::string>> applied_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> members_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> drained_ ABSL_GUARDED_BY(mutex_);
  int suspends_ ABSL_GUARDED_BY(mutex_) = 0;
  int refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

FakeCoordinator::FakeCoordinator() : service_(std::make_unique<Service>()) {
  auto server = rpc::Server::Start({}, {service_.get()});
  MEDLEY_CHECK(server.ok(), base::ToString(server.status()));
  server_ = *std::move(server);
}
FakeCoordinator::~FakeCoordinator() = default;
int FakeCoordinator::port() const { return server_->port(); }
std::vector<std::pair<int64_t, std::string>> FakeCoordinator::applied() const {
  base::MutexLock lock(service_->mutex_);
  return service_->applied_;
}
std::set<std::string> FakeCoordinator::members() const {
  base::MutexLock lock(service_->mutex_);
  return service_->members_;
}
std::set<std::string> FakeCoordinator::drained() const {
  base::MutexLock lock(service_->mutex_);
  return service_->drained_;
}
int FakeCoordinator::suspends() const {
  base::MutexLock lock(service_->mutex_);
  return service_->suspends_;
}
int FakeCoordinator::refused() const {
  base::MutexLock lock(service_->mutex_);
  return service_->refused_;
}
int64_t FakeCoordinator::leader_term() const {
  base::MutexLock lock(service_->mutex_);
  return service_->seen_.leader_term();
}
void FakeCoordinator::ServeTerm(int64_t term) {
  base::MutexLock lock(service_->mutex_);
  service_->seen_.set_leader_term(term);
  service_->Changed();
}
void FakeCoordinator::SetAutoCommit(bool on) {
  base::MutexLock lock(service_->mutex_);
  service_->auto_commit_ = on;
}
void FakeCoordinator::Commit() {
  base::MutexLock lock(service_->mutex_);
  service_->CommitLocked();
  service_->Changed();
}
void FakeCoordinator::Progress(int64_t samples, double throughput) {
  base::MutexLock lock(service_->mutex_);
  service_->seen_.set_samples_done(samples);
  service_->seen_.set_step(samples / 512);
  service_->seen_.set_throughput(throughput);
  service_->seen_.set_usd_spent(0.1);
  service_->seen_.set_usd_first_plan(0.15);
  service_->Changed();
}
void FakeCoordinator::Recover(const std::string& member) {
  base::MutexLock lock(service_->mutex_);
  job_pb::SwitchRecord& record = *service_->seen_.add_switches();
  record.set_from_generation(service_->seen_.generation());
  record.set_to_generation(service_->seen_.generation() + 1);
  record.set_reason(member + " was lost");
  record.set_cause(job_pb::SWITCH_CAUSE_MEMBER_LOST);
  record.set_member(member);
  record.set_recovery(true);
  record.set_lost_steps(2);
  service_->seen_.set_generation(record.to_generation());
  service_->Changed();
}
void FakeCoordinator::Complete() {
  base::MutexLock lock(service_->mutex_);
  service_->seen_.set_phase(job_pb::JOB_PHASE_COMPLETE);
  service_->seen_.set_samples_done(1000000);
  (*service_->seen_.mutable_metrics())["auc"] = 0.92;
  service_->Changed();
}
bool FakeCoordinator::ends() const {
  base::MutexLock lock(service_->mutex_);
  return service_->seen_.phase() == job_pb::JOB_PHASE_COMPLETE && service_->read_to_the_end_;
}
void FakeCoordinator::Fail(const std::string& message, bool retryable) {
  base::MutexLock lock(service_->mutex_);
  service_->seen_.set_phase(job_pb::JOB_PHASE_FAILED);
  service_->seen_.set_message(message);
  service_->seen_.set_retryable(retryable);
  service_->Changed();
}
void FakeCoordinator::Forget() {
  base::MutexLock lock(service_->mutex_);
  service_->seen_.Clear();
  service_->read_to_the_end_ = false;
  service_->Changed();
}

}  // namespace medley::ops
