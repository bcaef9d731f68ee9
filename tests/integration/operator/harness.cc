#include "tests/integration/operator/harness.h"

#include <grpcpp/grpcpp.h>

#include <cstdlib>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/kube/errors.h"
#include "common/model/convert.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "medley/profile/v1/profile.pb.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using kube::Json;
namespace sched_pb = scheduler::v1;
namespace job_pb = job::v1;

void WaitABit(base::nanoseconds time) {
  base::Mutex mutex;
  base::CondVar never;
  base::MutexLock lock(mutex);
  never.WaitFor(mutex, {}, time, [] { return false; });
}

// emb on 2 cpu, the rest on 1 gpu while that is cheap; else everything on 4 cpu.
model::PlanResult DefaultPlan(double gpu_price) {
  const bool mixed = gpu_price > 0 && gpu_price <= 1;
  model::PlanResult result;
  model::ExecutionPlan plan;
  const model::Sync servers{.kind = model::SyncKind::kParameterServer};
  if (mixed) {
    plan.stages = {{{{0, 1}}, {{"cpu", 2, 1}}, {{{{0, 1}}, servers}}, 0},
                   {{{1, 3}}, {{"gpu", 1, 1}}, {}, 0}};
  } else {
    plan.stages = {{{{0, 3}}, {{"cpu", 4, 1}}, {{{{0, 1}}, servers}}, 0}};
  }
  plan.servers = model::Servers{"cpu", 1};
  plan.schedule.micro_batches = 4;
  const double per_hour = mixed ? 3 * 0.04 + gpu_price : 5 * 0.04;
  plan.estimate = {1000, per_hour, per_hour, 3600, {}};
  plan.provenance.planner = "fake";
  model::ProvisionedPlan provisioned;
  provisioned.stages = mixed ? std::vector<model::ProvisionedStage>{{0, 0, "cpu", 2, 1000, 0, 0},
                                                                    {1, 2, "gpu", 1, 1000, 0, 0}}
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

std::string ProfileLine(const std::string& pool) {
  model::Profile profile;
  profile.id = "p";
  profile.profile_batch_size = 512;
  profile.samples_per_epoch = 1000000;
  for (const char* name : {"emb", "fc", "loss"}) {
    model::Layer layer;
    layer.name = name;
    layer.kind = "OTHER";
    model::LayerProfile numbers;
    numbers.resource_type = pool;
    numbers.compute_seconds = 0.01;
    numbers.compute_parallel = 1;
    layer.profiles.push_back(numbers);
    profile.model.layers.push_back(layer);
  }
  profile::v1::Profile proto;
  model::ToProto(profile, proto);
  return "noise\nMEDLEY-PROFILE " + model::ToJson(proto) + "\n";
}

// A real API server asks a kubelet for logs; here the harness is the kubelet.
class ClientWithLogs final : public kube::Client {
 public:
  ClientWithLogs(kube::Client& client, kube::LogReader& logs) : client_(client), logs_(logs) {}

  absl::StatusOr<std::string> GetRaw(std::string_view path) override {
    const size_t pods = path.find("/pods/");
    const size_t log = path.find("/log?");
    if (pods == std::string_view::npos || log == std::string_view::npos)
      return client_.GetRaw(path);
    const std::string name(path.substr(pods + 6, log - pods - 6));
    std::string text;
    MEDLEY_RETURN_IF_ERROR(logs_.ReadLog({"", name}, {}, {}, [&](std::string_view piece) {
      text += piece;
      return true;
    }));
    return text;
  }
  absl::StatusOr<kube::Object> Get(const kube::Resource& resource, const kube::Key& key) override {
    return client_.Get(resource, key);
  }
  absl::StatusOr<kube::ObjectList> List(const kube::Resource& resource,
                                        const kube::ListOptions& options) override {
    return client_.List(resource, options);
  }
  absl::StatusOr<kube::Object> Create(const kube::Resource& resource,
                                      const kube::Object& object) override {
    return client_.Create(resource, object);
  }
  absl::StatusOr<kube::Object> Update(const kube::Resource& resource, const kube::Object& object,
                                      std::string_view subresource) override {
    return client_.Update(resource, object, subresource);
  }
  absl::StatusOr<kube::Object> Patch(const kube::Resource& resource, const kube::Key& key,
                                     kube::PatchType type, const Json& patch,
                                     const kube::PatchOptions& options,
                                     std::string_view subresource) override {
    return client_.Patch(resource, key, type, patch, options, subresource);
  }
  absl::Status Delete(const kube::Resource& resource, const kube::Key& key,
                      const kube::DeleteOptions& options) override {
    return client_.Delete(resource, key, options);
  }
  absl::Status Watch(const kube::Resource& resource, const kube::WatchOptions& options,
                     std::stop_token stop,
                     const std::function<bool(kube::WatchEvent)>& on_event) override {
    return client_.Watch(resource, options, std::move(stop), on_event);
  }

 private:
  kube::Client& client_;
  kube::LogReader& logs_;
};

std::unique_ptr<kube::HttpClient> NewClient(const kube::TestServer& server, base::Clock& clock) {
  return std::make_unique<kube::HttpClient>(server.config(), clock, 1);
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
    for (const model::Resource& resource : parsed->resources)
      offered |= resource.name == "gpu" && resource.limit > 0;
    const auto result = planner
                            ? planner(*parsed)
                            : absl::StatusOr<model::PlanResult>(DefaultPlan(offered ? price : 0));
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

  void Publish(double price) {
    base::MutexLock lock(mutex_);
    gpu_price_ = price;
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
    if (gpu_price_ <= 0) return;
    sched_pb::CatalogEntry& entry = *catalog.add_entries();
    entry.mutable_offering()->set_provider("aws");
    entry.mutable_offering()->set_region("r");
    entry.mutable_offering()->set_instance_type("p3");
    entry.mutable_offering()->set_capacity_type("spot");
    entry.mutable_offering()->set_units_per_instance(1);
    entry.set_price_per_instance_hour(gpu_price_);
    entry.set_price_per_unit_hour(gpu_price_);
    entry.set_source("test");
    entry.set_available(true);
  }

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  Planner planner_ ABSL_GUARDED_BY(mutex_);
  double gpu_price_ ABSL_GUARDED_BY(mutex_) = 0.5;
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
    const int64_t epoch = request->plan().epoch();
    if (epoch < seen_.epoch())
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "older epoch");
    if (applied_.empty() || applied_.back().first != epoch)
      applied_.emplace_back(epoch, request->reason());
    members_.clear();
    for (const auto& slot : request->slots()) members_.insert(slot.member());
    reason_ = request->reason();
    seen_.set_next_epoch(epoch);
    if (seen_.phase() == job_pb::JOB_PHASE_UNSPECIFIED) seen_.set_phase(job_pb::JOB_PHASE_WAITING);
    if (seen_.epoch() > 0) seen_.set_phase(job_pb::JOB_PHASE_PREPARING);
    if (auto_commit_) CommitLocked();
    Changed();
    response->set_epoch(epoch);
    return grpc::Status::OK;
  }

  grpc::Status WatchObservations(
      grpc::ServerContext* context, const job_pb::WatchObservationsRequest*,
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
    }
    return grpc::Status::CANCELLED;
  }

  grpc::Status Drain(grpc::ServerContext*, const job_pb::DrainRequest* request,
                     job_pb::DrainResponse*) override {
    base::MutexLock lock(mutex_);
    drained_.insert(request->members().begin(), request->members().end());
    return grpc::Status::OK;
  }

  grpc::Status Suspend(grpc::ServerContext*, const job_pb::SuspendRequest*,
                       job_pb::SuspendResponse* response) override {
    base::MutexLock lock(mutex_);
    ++suspends_;
    seen_.set_phase(job_pb::JOB_PHASE_SUSPENDED);
    Changed();
    response->set_step(seen_.step());
    return grpc::Status::OK;
  }

  void CommitLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (seen_.epoch() > 0) {
      job_pb::SwitchRecord& record = *seen_.add_switches();
      record.set_from_epoch(seen_.epoch());
      record.set_to_epoch(seen_.next_epoch());
      record.set_reason(reason_);
      record.set_cause(job_pb::SWITCH_CAUSE_PLAN);
      record.set_pause_seconds(0.25);
    }
    seen_.set_epoch(seen_.next_epoch());
    seen_.set_next_epoch(0);
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
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool auto_commit_ ABSL_GUARDED_BY(mutex_) = true;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int64_t, std::string>> applied_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> members_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> drained_ ABSL_GUARDED_BY(mutex_);
  int suspends_ ABSL_GUARDED_BY(mutex_) = 0;
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
  record.set_from_epoch(service_->seen_.epoch());
  record.set_to_epoch(service_->seen_.epoch() + 1);
  record.set_reason(member + " was lost");
  record.set_cause(job_pb::SWITCH_CAUSE_MEMBER_LOST);
  record.set_member(member);
  record.set_recovery(true);
  record.set_lost_steps(2);
  service_->seen_.set_epoch(record.to_epoch());
  service_->Changed();
}
void FakeCoordinator::Complete() {
  base::MutexLock lock(service_->mutex_);
  service_->seen_.set_phase(job_pb::JOB_PHASE_COMPLETE);
  service_->seen_.set_samples_done(1000000);
  (*service_->seen_.mutable_metrics())["auc"] = 0.92;
  service_->Changed();
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
  service_->Changed();
}

OperatorHarness::OperatorHarness()
    : server_(GetParam(), clock_), ns_(server_.ns()), client_(NewClient(server_, clock_)) {}
OperatorHarness::~OperatorHarness() = default;

void OperatorHarness::SetUp() {
  const std::string crds = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/deploy/crds/";
  for (const char* file : {"resourcepools.yaml", "trainingjobs.yaml"})
    server_.InstallCrd(base::ReadFile(crds + file).value());
  if (server_.real()) {
    operators_ = std::make_unique<ClientWithLogs>(*client_, *this);
  } else {
    server_.embedded()->SetLogReader(this);
    operators_ = NewClient(server_, clock_);
  }
  Apply(kube::resources::Nodes(),
        Json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})"));
  const Json status = Json::parse(
      R"({"status": {"allocatable": {"cpu": "64", "example.com/gpu": "4", "pods": "200"},
                                       "conditions": [{"type": "Ready", "status": "True"}]}})");
  ASSERT_THAT(client_->Patch(kube::resources::Nodes(), {"", "n1"}, kube::PatchType::kMerge, status,
                             {}, "status"),
              base::IsOk());
  Apply(ResourcePools(),
        Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "cpu"}, "spec": {"class": "CPU", "limit": 16, "unit": {"resources": {"cpu": "1"}},
    "price": {"usdPerUnitHour": "0.04"}}})"));
  Apply(ResourcePools(),
        Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "gpu"}, "spec": {"class": "GPU", "limit": 2, "unit": {"resources": {"example.com/gpu": "1"}},
    "price": {"offering": {"provider": "aws", "region": "r", "instanceType": "p3", "capacityType": "spot"}}}})"));
}

void OperatorHarness::TearDown() {
  StopOperator();
  if (server_.real()) {
    CleanUp();
  } else {
    server_.embedded()->SetLogReader(nullptr);
  }
  client_->Shutdown();
}

// What a real server would keep for the next test.
void OperatorHarness::CleanUp() {
  const auto jobs = client_->List(TrainingJobs(), {.ns = ns_});
  ASSERT_THAT(jobs, base::IsOk());
  for (const kube::Object& job : jobs->items) {
    const Json released = {{"metadata", {{"finalizers", nullptr}}}};
    for (const absl::Status& status :
         {client_->Delete(TrainingJobs(), job.key()),
          client_->Patch(TrainingJobs(), job.key(), kube::PatchType::kMerge, released).status()}) {
      EXPECT_TRUE(status.ok() || kube::IsNotFound(status)) << base::ToString(status);
    }
  }
  const auto pools = client_->List(ResourcePools(), {});
  ASSERT_THAT(pools, base::IsOk());
  for (const kube::Object& pool : pools->items)
    EXPECT_THAT(client_->Delete(ResourcePools(), pool.key()), base::IsOk());
  EXPECT_THAT(client_->Delete(kube::resources::Nodes(), {"", "n1"}), base::IsOk());
}

absl::Status OperatorHarness::ReadLog(const kube::Key& pod, const kube::LogOptions&,
                                      std::stop_token,
                                      const std::function<bool(std::string_view)>& sink) {
  const size_t at = pod.name.find("-profile-");
  if (at == std::string::npos) {
    sink("line one\nsegmentation fault\n");
  } else {
    sink(profiler_log_.empty() ? ProfileLine(pod.name.substr(at + 9)) : profiler_log_);
  }
  return absl::OkStatus();
}

void OperatorHarness::StartOperator() {
  OperatorOptions options;
  options.scheduler_address = scheduler_.address();
  options.job.worker.listen_port = coordinator_.port();
  options.job.status_interval = base::milliseconds(200);
  options.job.recheck = base::seconds(2);
  options.job.scheduler_retry = base::milliseconds(300);
  options.job.default_warm_up_seconds = 1;
  app_ = std::make_unique<OperatorApp>(std::move(options), *operators_, clock_);
  ASSERT_THAT(app_->Start({}), base::IsOk());
}

void OperatorHarness::StopOperator() {
  if (app_ != nullptr) app_->Stop();
  app_.reset();
}

Json OperatorHarness::JobJson(const std::string& name) {
  Json job = Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {},
    "spec": {"model": {"name": "ctrdnn"}, "training": {"epochs": 1},
             "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                      "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]}},
             "elasticity": {"replan": {"cooldown": "60s"}}}})");
  job["metadata"]["namespace"] = ns_;
  job["metadata"]["name"] = name;
  return job;
}

void OperatorHarness::Apply(const kube::Resource& resource, const Json& object) {
  const auto made = client_->Create(resource, kube::Object(object));
  ASSERT_THAT(made, base::IsOk());
}

void OperatorHarness::PatchSpec(const std::string& name, const Json& spec) {
  ASSERT_THAT(
      client_->Patch(TrainingJobs(), {ns_, name}, kube::PatchType::kMerge, {{"spec", spec}}),
      base::IsOk());
}

void OperatorHarness::SetPod(const std::string& name, const Json& status) {
  const auto done = client_->Patch(kube::resources::Pods(), {ns_, name}, kube::PatchType::kMerge,
                                   {{"status", status}}, {}, "status");
  if (kube::IsNotFound(done.status())) return;
  ASSERT_THAT(done, base::IsOk());
}

void OperatorHarness::Pump() {
  if (!kubelet_on_) return;
  const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
  ASSERT_THAT(pods, base::IsOk());
  for (const kube::Object& pod : pods->items) {
    if (pod.deleting()) {  // ended: it may go
      const absl::Status gone = client_->Delete(kube::resources::Pods(), pod.key(),
                                                {.uid = pod.uid(), .grace_period_seconds = 0});
      EXPECT_TRUE(gone.ok() || kube::IsNotFound(gone) || kube::IsConflict(gone))
          << base::ToString(gone);
      continue;
    }
    const std::string phase = pod.String("/status/phase");
    if (phase == "Running" || phase == "Succeeded" || phase == "Failed") continue;
    if (pod.label(kRoleLabel) == "profiler") {
      const int code = profiler_exit_;
      SetPod(pod.key().name,
             {{"phase", code == 0 ? "Succeeded" : "Failed"},
              {"containerStatuses",
               Json::array({{{"name", "worker"},
                             {"image", "i"},
                             {"imageID", ""},
                             {"ready", false},
                             {"restartCount", 0},
                             {"state", {{"terminated", {{"exitCode", code}}}}}}})}});
    } else {
      SetPod(pod.key().name, {{"phase", "Running"}, {"podIP", "127.0.0.1"}});
    }
  }
}

bool OperatorHarness::Eventually(const std::function<bool()>& holds, const std::string& what) {
  const base::SystemClock real;
  const base::SteadyTime deadline = real.Steady() + base::seconds(30);
  while (real.Steady() < deadline) {
    Pump();
    if (holds()) return true;
    WaitABit(base::milliseconds(10));
  }
  ADD_FAILURE() << "waited in vain for: " << what << "\n" << Status().ToJson().dump(2);
  return false;
}

void OperatorHarness::Settle() {
  for (int i = 0; i < 20; ++i) {
    Pump();
    WaitABit(base::milliseconds(10));
  }
}

bool OperatorHarness::WaitForCondition(const std::string& type, const std::string& status,
                                       const std::string& reason) {
  return Eventually(
      [&] {
        const JobStatus now = Status();
        const Condition* found = now.conditions.Find(type);
        return found != nullptr && ToString(found->status) == status &&
               (reason.empty() || found->reason == reason);
      },
      type + "=" + status + " " + reason);
}

void OperatorHarness::RunJob() {
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  ASSERT_TRUE(WaitForCondition("PodsReady", "True"));
}

JobStatus OperatorHarness::Status(const std::string& name) {
  const auto job = client_->Get(TrainingJobs(), {ns_, name});
  return job.ok() ? JobStatus::FromJson(job->At("/status")) : JobStatus();
}

kube::Object OperatorHarness::Get(const kube::Resource& resource, const kube::Key& key) {
  const auto object = client_->Get(resource, key);
  EXPECT_THAT(object, base::IsOk());
  return object.ok() ? *object : kube::Object();
}

bool OperatorHarness::Exists(const kube::Resource& resource, const kube::Key& key) {
  return client_->Get(resource, key).ok();
}

std::set<std::string> OperatorHarness::PodNames() {
  std::set<std::string> names;
  const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
  EXPECT_THAT(pods, base::IsOk());
  if (pods.ok()) {
    for (const kube::Object& pod : pods->items) names.insert(pod.key().name);
  }
  return names;
}

bool OperatorHarness::HasEvent(const std::string& reason, const std::string& part) {
  const auto events = client_->List(kube::resources::Events(), {.ns = ns_});
  if (!events.ok()) return false;
  for (const kube::Object& event : events->items) {
    if (event.String("/reason") == reason &&
        event.String("/message").find(part) != std::string::npos)
      return true;
  }
  return false;
}

}  // namespace medley::ops
