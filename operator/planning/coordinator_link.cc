#include "operator/planning/coordinator_link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "common/model/convert.h"
#include "common/model/convert_tables.h"
#include "common/model/task.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/mutual_tls.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "operator/planning/observation_stream.h"
#include "operator/records/plan_record.h"

namespace medley::ops {
namespace {

namespace pb = job::v1;

// A coordinator that vanished is first seen by its pod; pings are for a network that lost the connection alone.
constexpr base::milliseconds kPingInterval{30'000};

JobPhase FromProto(pb::JobPhase phase) {
  switch (phase) {
    case pb::JOB_PHASE_WAITING:
      return JobPhase::kWaiting;
    case pb::JOB_PHASE_TRAINING:
      return JobPhase::kTraining;
    case pb::JOB_PHASE_PREPARING:
      return JobPhase::kPreparing;
    case pb::JOB_PHASE_SWITCHING:
      return JobPhase::kSwitching;
    case pb::JOB_PHASE_RECOVERING:
      return JobPhase::kRecovering;
    case pb::JOB_PHASE_EVALUATING:
      return JobPhase::kEvaluating;
    case pb::JOB_PHASE_COMPLETE:
      return JobPhase::kComplete;
    case pb::JOB_PHASE_FAILED:
      return JobPhase::kFailed;
    case pb::JOB_PHASE_SUSPENDED:
      return JobPhase::kSuspended;
    default:
      return JobPhase::kUnknown;
  }
}

std::string CauseOf(const pb::SwitchRecord& record) {
  switch (record.cause()) {
    case pb::SWITCH_CAUSE_MEMBER_LEFT:
      return "MemberLeft";
    case pb::SWITCH_CAUSE_MEMBER_RETURNED:
      return "MemberReturned";
    case pb::SWITCH_CAUSE_MEMBER_LOST:
      return "MemberLost";
    case pb::SWITCH_CAUSE_SESSION_BROKEN:
      return "SessionBroken";
    case pb::SWITCH_CAUSE_EXCHANGE_BROKEN:
      return "ExchangeBroken";
    case pb::SWITCH_CAUSE_MEMBER_FAULT:
      return "MemberFault";
    case pb::SWITCH_CAUSE_TIMEOUT:
      return "Timeout";
    case pb::SWITCH_CAUSE_COORDINATOR_RESTARTED:
      return "CoordinatorRestarted";
    case pb::SWITCH_CAUSE_MEMBER_SLOW:
      return std::string(kMemberSlow);
    case pb::SWITCH_CAUSE_STANDBY_RETURNED:
      return std::string(kStandbyReturned);
    default:
      return record.reason();  // of the plan
  }
}

goodput::Account UnitsOf(const pb::Observation& in) {
  goodput::Account account;
  account.id = in.units().id();
  account.first_samples = in.units().first_samples();
  account.samples = in.samples_done();
  for (const pb::PoolSeconds& pool : in.units().pools()) {
    goodput::Amounts& amounts = account.pools[pool.pool()];
    for (const auto& [name, seconds] : pool.seconds()) {
      if (const auto category = goodput::ParseCategory(name)) amounts[*category] = std::max(0.0, seconds);
    }
  }
  return account;
}

Observation FromProto(const pb::Observation& in) {
  Observation out;
  out.phase = FromProto(in.phase());
  out.generation = in.generation();
  out.next_generation = in.next_generation();
  out.plan_generation = in.plan_generation();
  out.step = in.step();
  out.samples_done = in.samples_done();
  out.samples_total = in.samples_total();
  out.epoch = in.epoch();
  out.epochs = in.epochs();
  out.throughput = in.throughput();
  out.loss = in.loss();
  for (const pb::StageObservation& s : in.stages()) {
    out.stages.push_back({s.units(), s.compute_seconds(), s.comm_seconds(), s.throughput(), s.processor_seconds()});
  }
  out.metrics = {in.metrics().begin(), in.metrics().end()};
  for (const pb::EvaluationRecord& e : in.evaluations()) {
    const std::optional<double> loss = e.has_loss() ? std::optional(e.loss()) : std::nullopt;
    out.evaluations.push_back(
        {e.step(), e.epochs(), loss, {e.metrics().begin(), e.metrics().end()}, model::TimeFromProto(e.at())});
  }
  if (in.has_best()) {
    const pb::BestModel& best = in.best();
    out.best = BestModel{best.step(), best.epochs(), model::MetricKey(best.metric()), best.value(),
                         best.data() == pb::EVALUATION_DATA_VALIDATION};
  }
  if (in.has_exported()) {
    out.exported = ExportedModel{in.exported().step(), in.exported().epochs(), in.exported().best()};
  }
  out.units = UnitsOf(in);
  out.usd_spent = in.usd_spent();
  out.usd_first_plan = in.usd_first_plan();
  for (const pb::SwitchRecord& s : in.switches()) {
    out.switches.push_back({s.from_generation(), s.to_generation(), s.reason(), CauseOf(s), s.pause_seconds(),
                            s.recovery(), s.lost_steps(), model::TimeFromProto(s.at()), s.start_seconds()});
  }
  out.missing_members = {in.missing_members().begin(), in.missing_members().end()};
  out.message = in.message();
  out.restarts = in.restarts();
  out.bad_rows = in.bad_rows();
  out.last_checkpoint_step = in.last_checkpoint_step();
  out.retryable = in.retryable();
  out.stopped_early = in.stopped_early();
  out.leader_term = in.leader_term();
  if (in.has_checkpoint_failure()) {
    const pb::CheckpointFailure& failure = in.checkpoint_failure();
    out.checkpoint_failure =
        CheckpointFailure{model::TimeFromProto(failure.since()), failure.message(), failure.paused()};
  }
  if (in.has_agreement()) out.agreement = Agreement{in.agreement().fraction(), in.agreement().ratio()};
  if (in.has_row_tiers()) {
    const pb::RowTiers& rows = in.row_tiers();
    out.embedding_rows = EmbeddingRows{.in_memory = rows.memory_rows(),
                                       .on_disk = rows.disk_rows(),
                                       .memory_bytes = rows.memory_bytes(),
                                       .disk_bytes = rows.disk_bytes(),
                                       .pulled = rows.pulled_rows(),
                                       .loaded = rows.loaded_rows(),
                                       .loaded_ahead = rows.ahead_rows(),
                                       .left = rows.left_rows(),
                                       .wait_seconds = rows.wait_seconds()};
  }
  if (in.has_device_tables()) {
    const pb::DeviceTables& tables = in.device_tables();
    const auto place = model::FromProto(tables.place(), "");
    out.device_tables = DeviceTables{.place = place.ok() ? *place : model::TablePlace::kUnspecified,
                                     .used = tables.used_rows(),
                                     .found = tables.found_rows(),
                                     .bytes_in = tables.bytes_in(),
                                     .bytes_out = tables.bytes_out(),
                                     .instead = tables.instead()};
  }
  for (const pb::LeftOutMember& member : in.left_out()) {
    out.left_out.push_back({member.member(), model::TimeFromProto(member.since())});
  }
  if (in.has_refused()) {
    out.refused = RefusedPlan{in.refused().generation(), in.refused().member(), in.refused().message()};
  }
  return out;
}

// Null: plain text. The key of the operator's certificate is only in this process, so the certificate need not end
// before the CA does.
absl::StatusOr<std::shared_ptr<const rpc::MutualTls>> TlsOf(const Connection& connection) {
  const JobCredentials& credentials = connection.credentials;
  if (credentials.ca_certificate.empty()) return nullptr;
  const std::string name = certificates::JobName(connection.job_uid);
  MEDLEY_ASSIGN_OR_RETURN(const auto validity, certificates::ValidityOf(credentials.ca_certificate));
  MEDLEY_ASSIGN_OR_RETURN(const auto own,
                          certificates::Issue({credentials.ca_certificate, credentials.ca_key}, {name}, validity));
  return rpc::MutualTls::FromTexts({credentials.ca_certificate, own.certificate, own.key}, name);
}

}  // namespace

CoordinatorLink::CoordinatorLink(StreamLoop& loop, Connection connection, std::shared_ptr<const rpc::MutualTls> tls,
                                 uint64_t seed, OnChange on_change)
    : connection_(std::move(connection)),
      on_change_(std::move(on_change)),
      channel_(rpc::MakeChannel(address(), {.mutual_tls = std::move(tls), .keepalive_interval = kPingInterval})) {
  stream_ = std::make_unique<ObservationStream>(
      loop, channel_, token(), seed,
      [this](const pb::Observation& observation, bool first) { Hear(observation, first); });
}

CoordinatorLink::~CoordinatorLink() = default;

std::shared_ptr<const Observation> CoordinatorLink::latest() const {
  base::MutexLock lock(mutex_);
  return latest_;
}

void CoordinatorLink::Hear(const pb::Observation& observation, bool first) {
  const auto now = std::make_shared<const Observation>(FromProto(observation));
  if (first) published_ = nullptr;
  const bool news = IsNews(published_.get(), *now);
  if (news) published_ = now;
  {
    base::MutexLock lock(mutex_);
    latest_ = now;
  }
  on_change_(news);
}

absl::StatusOr<int64_t> CoordinatorLink::ApplyPlan(const PlanRecord& record, int64_t term, std::stop_token stop) {
  pb::ApplyPlanRequest request;
  model::ToProto(record.plan, *request.mutable_plan());
  for (const MemberSlot& slot : record.slots) {
    pb::MemberSlot& out = *request.add_slots();
    out.set_member(slot.member);
    out.set_role(slot.role == Role::kServer ? pb::MEMBER_ROLE_SERVER : pb::MEMBER_ROLE_TRAINER);
    out.set_pool(slot.pool);
    out.set_stage(slot.stage);
    out.set_index(slot.index);
    out.set_device(slot.device);
  }
  request.set_reason(std::string(ToString(record.reason)));
  request.set_leader_term(term);
  for (const auto& [pool, price] : record.usd_per_unit_hour) (*request.mutable_usd_per_unit_hour())[pool] = price;
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = token(), .timeout = base::seconds(10)});
  rpc::StopCancelsCall guard(context, std::move(stop));
  pb::ApplyPlanResponse response;
  const auto stub = pb::CoordinatorService::NewStub(channel_);
  MEDLEY_RETURN_IF_ERROR(
      rpc::FromGrpc(stub->ApplyPlan(&context, request, &response), "coordinator " + address() + ": ApplyPlan"));
  return response.generation();
}

absl::Status CoordinatorLink::Drain(const std::vector<std::string>& members, base::nanoseconds notice, int64_t term,
                                    std::stop_token stop) {
  pb::DrainRequest request;
  request.set_leader_term(term);
  for (const std::string& member : members) request.add_members(member);
  const auto whole = std::chrono::duration_cast<base::seconds>(notice);
  request.mutable_notice()->set_seconds(whole.count());
  request.mutable_notice()->set_nanos(static_cast<int32_t>((notice - whole).count()));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = token(), .timeout = base::seconds(10)});
  rpc::StopCancelsCall guard(context, std::move(stop));
  pb::DrainResponse response;
  const auto stub = pb::CoordinatorService::NewStub(channel_);
  return rpc::FromGrpc(stub->Drain(&context, request, &response), "coordinator " + address() + ": Drain");
}

absl::StatusOr<int64_t> CoordinatorLink::Suspend(const std::string& reason, base::nanoseconds timeout, int64_t term,
                                                 std::stop_token stop) {
  pb::SuspendRequest request;
  request.set_leader_term(term);
  request.set_reason(reason);
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = token(), .timeout = timeout});
  rpc::StopCancelsCall guard(context, std::move(stop));
  pb::SuspendResponse response;
  const auto stub = pb::CoordinatorService::NewStub(channel_);
  MEDLEY_RETURN_IF_ERROR(
      rpc::FromGrpc(stub->Suspend(&context, request, &response), "coordinator " + address() + ": Suspend"));
  return response.step();
}

CoordinatorLinks::CoordinatorLinks(uint64_t seed, OnChange on_change)
    : seed_(seed), on_change_(std::move(on_change)), loop_(std::make_unique<StreamLoop>()) {}

CoordinatorLinks::~CoordinatorLinks() = default;

absl::StatusOr<std::shared_ptr<CoordinatorLink>> CoordinatorLinks::For(const kube::Key& job,
                                                                       const Connection& connection) {
  if (auto found = Find(job); found != nullptr && found->connection() == connection) return found;
  MEDLEY_ASSIGN_OR_RETURN(auto tls, TlsOf(connection));
  std::shared_ptr<CoordinatorLink> old;  // destroyed, and so joined, outside of the lock
  base::MutexLock lock(mutex_);
  std::shared_ptr<CoordinatorLink>& link = links_[job];
  if (link == nullptr || link->connection() != connection) {
    old =
        std::exchange(link, std::make_shared<CoordinatorLink>(*loop_, connection, std::move(tls), seed_ + links_.size(),
                                                              [this, job](bool news) { on_change_(job, news); }));
  }
  return link;
}

std::shared_ptr<CoordinatorLink> CoordinatorLinks::Find(const kube::Key& job) const {
  base::MutexLock lock(mutex_);
  const auto found = links_.find(job);
  return found == links_.end() ? nullptr : found->second;
}

void CoordinatorLinks::Drop(const kube::Key& job) {
  std::shared_ptr<CoordinatorLink> old;
  base::MutexLock lock(mutex_);
  const auto found = links_.find(job);
  if (found == links_.end()) return;
  old = std::move(found->second);
  links_.erase(found);
}

void CoordinatorLinks::Clear() {
  std::map<kube::Key, std::shared_ptr<CoordinatorLink>> old;
  base::MutexLock lock(mutex_);
  old.swap(links_);
}

}  // namespace medley::ops
