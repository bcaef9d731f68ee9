#include "worker/app/serve_rows.h"

#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/rows_member.h"
#include "common/rpc/server.h"
#include "worker/app/job_identity.h"
#include "worker/app/make_session.h"
#include "worker/export/initial_weights.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/trainer/member.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

constexpr base::nanoseconds kRejoinWait = base::milliseconds(100);

// Tables of a model's archive are as they were written.
absl::Status CheckTables(const Graph& graph, const std::vector<ParameterSpec>& tables) {
  if (graph.imported == nullptr) return absl::OkStatus();
  const exported::Program& program = *graph.imported->cut->program;
  for (const ParameterSpec& table : tables) {
    const exported::StoredTensor& stored = program.stored.at(table.name);
    MEDLEY_RETURN_IF_ERROR(exported::CheckContents(stored, table.name));
    exported::LetGo(program, stored);
  }
  return absl::OkStatus();
}

}  // namespace

RowsHost::RowsHost(const Environment& env, const JobTls& tls, ParameterServer& service, base::Clock& clock)
    : env_(env), tls_(tls), service_(service), clock_(clock), watch_([this](const std::stop_token& stop) {
        base::MutexLock lock(mutex_);
        if (changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !error_.ok(); })) {
          lost_.request_stop();
        }
      }) {}

absl::StatusOr<std::unique_ptr<RowsHost>> RowsHost::Start(const Environment& env, const JobTls& tls, int port,
                                                          ParameterServer& service, base::Clock& clock) {
  std::unique_ptr<RowsHost> host(new RowsHost(env, tls, service, clock));
  MEDLEY_ASSIGN_OR_RETURN(host->graph_, ReadGraph(env.spec, ""));
  MEDLEY_RETURN_IF_ERROR(CheckTables(host->graph_, host->graph_.Parameters(true)));
  MEDLEY_RETURN_IF_ERROR(UseInitialWeights(env.spec, "", {}, InitialParts::kTables, host->graph_));
  MEDLEY_ASSIGN_OR_RETURN(host->optimizer_, OptimizerOf(env.spec.training));
  std::vector<int64_t> columns;
  for (const ParameterSpec& table : host->graph_.Parameters(true)) columns.push_back(table.columns);
  const rpc::ServerOptions serve = {.host = env.pod_ip,
                                    .port = port,
                                    .max_message_bytes = AcceptedBytes(columns),
                                    .mutual_tls = tls.credentials(),
                                    .trust_certificates = true};
  MEDLEY_ASSIGN_OR_RETURN(host->server_, rpc::Server::Start(serve, {&service.service()}));
  return host;
}

RowsHost::~RowsHost() {
  service_.Retain(0, -1);
  if (server_ != nullptr) server_->Stop();
}

absl::Status RowsHost::Error() const {
  base::MutexLock lock(mutex_);
  return error_;
}

ServerContext RowsHost::Context(const std::string& name) {
  ServerContext context;
  if (const auto& embeddings = env_.spec.training.embeddings) {
    context.tiers = {.memory_bytes = static_cast<int64_t>(embeddings->memory_budget),
                     .folder = env_.samples_folder / "rows",
                     .most_disk_bytes = static_cast<int64_t>(embeddings->disk_budget),
                     .failed =
                         [this](const absl::Status& status) {
                           base::MutexLock lock(mutex_);
                           if (error_.ok()) error_ = status;
                           changed_.NotifyAll();
                         },
                     .clock = &clock_};
  }
  context.tables = graph_.Parameters(true);
  context.optimizer = optimizer_;
  context.seed = env_.spec.training.seed;
  context.session = MakeSession(env_, tls_, name, pb::MEMBER_ROLE_SERVER, server_->address());
  context.checkpoint_root = env_.checkpoints;
  context.owner = {env_.job_uid, IdentityOf(env_.spec_json).model};
  context.clock = &clock_;
  return context;
}

RowsInTrainer::RowsInTrainer(const Environment& env, const JobTls& tls, base::Clock& clock)
    : env_(env), tls_(tls), clock_(clock), service_(env.token, clock), thread_([this](const std::stop_token& stop) {
        absl::Status status = Serve(stop);
        if (status.ok() || stop.stop_requested()) return;
        base::log::Error("this trainer can keep no rows", {{"status", base::ToString(status)}});
        {
          base::MutexLock lock(mutex_);
          error_ = std::move(status);
        }
        failed_.request_stop();
      }) {}

RowsInTrainer::~RowsInTrainer() = default;

absl::Status RowsInTrainer::Error() const {
  base::MutexLock lock(mutex_);
  return error_;
}

absl::Status RowsInTrainer::Serve(const std::stop_token& stop) {
  // The port is open on all pods of trainers, of which several may have one address: the system chooses it.
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<RowsHost> host, RowsHost::Start(env_, tls_, 0, service_, clock_));
  const std::string name = model::RowsMember(env_.member);
  while (!stop.stop_requested()) {
    const ServerContext context = host->Context(name);
    Member member(context.session, clock_);
    ServerRole role(context, service_, [&member](pb::SessionRequest request) { member.Send(std::move(request)); });
    std::stop_source end;
    const std::stop_callback on_stop(stop, [&end] { end.request_stop(); });
    const std::stop_callback on_loss(host->lost(), [&end] { end.request_stop(); });
    const absl::Status released = member.Run(role, end.get_token()).status();
    service_.Retain(0, -1);
    MEDLEY_RETURN_IF_ERROR(host->Error());
    MEDLEY_RETURN_IF_ERROR(released);
    clock_.SleepFor(kRejoinWait, stop);  // where the process is to end, its trainer is released too
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
