#include <atomic>
#include <thread>
#include <utility>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/memory_limit.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/rpc/server.h"
#include "worker/app/choose_device.h"
#include "worker/app/job_identity.h"
#include "worker/app/job_tls.h"
#include "worker/app/roles.h"
#include "worker/export/initial_weights.h"
#include "worker/exported/archive.h"
#include "worker/model/imported_graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/ps/parameter_server.h"
#include "worker/trainer/member.h"
#include "worker/trainer/server_role.h"
#include "worker/trainer/trainer.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

SessionOptions MakeSession(const Environment& env, const JobTls& tls, pb::MemberRole role, std::string address) {
  SessionOptions session;
  session.coordinator = env.coordinator;
  session.address_book = std::make_shared<CoordinatorAddress>(env.coordinator, env.checkpoint_root);
  session.token = env.token;
  session.tls = tls.credentials();
  session.member = env.member;
  session.role = role;
  session.pool = env.pool;
  session.address = std::move(address);
  session.seed = base::SystemSeed();
  session.instance = base::HashHex(env.member + std::to_string(session.seed));
  return session;
}

// After SIGTERM the member asks the coordinator to release it. It exits without a release only when kStopNotice is
// over.
absl::StatusOr<int> RunUntilReleased(Member& member, Role& role, const Signals& signals) {
  std::stop_callback on_signal(signals.stop(), [&] {
    log::Info("received a stop signal: asking the coordinator to release this member");
    member.Leave(kStopNotice);
  });
  auto code = member.Run(role, {});
  if (!code.ok() && code.status().code() == absl::StatusCode::kCancelled && signals.stop().stop_requested()) return 0;
  return code;
}

// Finds a mistake of the spec before any data are read. Keeps nothing of the model's file in memory.
absl::Status CheckModel(const model::JobSpec& spec) {
  MEDLEY_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(spec, ""));
  if (graph.imported == nullptr) return absl::OkStatus();
  for (const std::string& warning : graph.imported->cut->removed) log::Warn(warning);
  return absl::OkStatus();
}

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

absl::StatusOr<int> RunTrainerRole(const Environment& env, BlockMaker make_block, base::Clock& clock,
                                   const Signals& signals) {
  MEDLEY_RETURN_IF_ERROR(CheckModel(env.spec));
  TrainerContext context;
  context.spec = &env.spec;
  MEDLEY_ASSIGN_OR_RETURN(context.optimizer, OptimizerOf(env.spec.training));
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, JobTls::Make(env, clock));
  context.session = MakeSession(env, tls, pb::MEMBER_ROLE_TRAINER, env.pod_ip);
  context.ip = env.pod_ip;
  context.tensor_tls = tls.tensors();
  context.share_memory = env.share_memory;
  context.checkpoint_root = env.checkpoint_root;
  context.owner = {env.job_uid, IdentityOf(env.spec_json).model};
  context.clock = &clock;
  context.threads = std::make_shared<ComputeThreads>(env.threads);
  MEDLEY_ASSIGN_OR_RETURN(context.device, ChooseDevice(env));
  context.make_block = std::move(make_block);
  context.plain_nccl = env.plain_nccl;
  log::Info("computing with the unit's CPUs", {{"threads", std::to_string(env.threads)}});
  Member member(context.session, clock);
  LoadOptions load{.embedding_rows = env.spec.model.embedding_rows, .threads = env.threads};
  load.place = PlaceIn(env.samples_folder, env.samples_shared, base::MemoryLimit());
  load.say = [](const std::string& sentence) { log::Info(sentence); };
  Trainer trainer(context, load, [&member](pb::SessionRequest request) { member.Send(std::move(request)); });
  const std::jthread preload([&trainer](std::stop_token stop) { trainer.Preload(stop); });
  return RunUntilReleased(member, trainer, signals);
}

absl::StatusOr<int> RunServerRole(const Environment& env, base::Clock& clock, const Signals& signals) {
  MEDLEY_ASSIGN_OR_RETURN(Graph graph, ReadGraph(env.spec, ""));
  MEDLEY_RETURN_IF_ERROR(CheckTables(graph, graph.Parameters(true)));
  MEDLEY_RETURN_IF_ERROR(UseInitialWeights(env.spec, "", {}, InitialParts::kTables, graph));
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, JobTls::Make(env, clock));
  ParameterServer service(env.token, clock);
  ServerContext context;
  context.tables = graph.Parameters(true);
  std::vector<int64_t> columns;
  for (const ParameterSpec& table : context.tables) columns.push_back(table.columns);
  const rpc::ServerOptions serve = {.host = env.pod_ip,
                                    .port = env.listen_port,
                                    .max_message_bytes = AcceptedBytes(columns),
                                    .mutual_tls = tls.credentials(),
                                    .trust_certificates = true};
  MEDLEY_ASSIGN_OR_RETURN(const auto server, rpc::Server::Start(serve, {&service.service()}));
  MEDLEY_ASSIGN_OR_RETURN(context.optimizer, OptimizerOf(env.spec.training));
  context.seed = env.spec.training.seed;
  context.session = MakeSession(env, tls, pb::MEMBER_ROLE_SERVER, server->address());
  context.checkpoint_root = env.checkpoint_root;
  context.owner = {env.job_uid, IdentityOf(env.spec_json).model};
  context.clock = &clock;
  Member member(context.session, clock);
  ServerRole role(context, service, [&member](pb::SessionRequest request) { member.Send(std::move(request)); });
  auto code = RunUntilReleased(member, role, signals);
  service.Retain(0, -1);  // closes every generation, which wakes the handlers
  server->Stop();
  return code;
}

}  // namespace medley::worker
