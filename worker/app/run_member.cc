#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "worker/app/choose_device.h"
#include "worker/app/job_identity.h"
#include "worker/app/job_tls.h"
#include "worker/app/make_session.h"
#include "worker/app/roles.h"
#include "worker/app/serve_rows.h"
#include "worker/model/imported_graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/places/places.h"
#include "worker/ps/parameter_server.h"
#include "worker/trainer/member.h"
#include "worker/trainer/rebuild.h"
#include "worker/trainer/server_role.h"
#include "worker/trainer/trainer.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

// Finds a mistake of the spec before any data are read. Keeps nothing of the model's file in memory. Returns whether
// the model has embedding tables.
absl::StatusOr<bool> CheckModel(const model::JobSpec& spec) {
  MEDLEY_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(spec, ""));
  if (graph.imported != nullptr) {
    for (const std::string& warning : graph.imported->cut->removed) base::log::Warn(warning);
  }
  return !graph.Parameters(true).empty();
}

}  // namespace

absl::StatusOr<int> RunTrainerRole(const Environment& env, Places* places, BlockMaker make_block, base::Clock& clock,
                                   const Signals& signals) {
  MEDLEY_ASSIGN_OR_RETURN(const bool tables, CheckModel(env.spec));
  TrainerContext context;
  model::JobSpec spec = env.spec;  // the trainer reads the addresses of data only after they were replaced
  context.spec = &spec;
  if (places != nullptr) {
    context.copy_data = [&spec, places](const std::stop_token& stop) { return places->CopyData(spec.data, stop); };
  }
  MEDLEY_ASSIGN_OR_RETURN(context.optimizer, OptimizerOf(env.spec.training));
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, JobTls::Make(env, clock));
  context.session = MakeSession(env, tls, env.member, pb::MEMBER_ROLE_TRAINER, env.pod_ip);
  context.ip = env.pod_ip;
  context.tensor_tls = tls.tensors();
  context.share_memory = env.share_memory;
  context.checkpoint_root = env.checkpoints;
  context.owner = {env.job_uid, IdentityOf(env.spec_json).model};
  context.clock = &clock;
  context.threads = std::make_shared<ComputeThreads>(env.threads);
  MEDLEY_ASSIGN_OR_RETURN(context.device, ChooseDevice(env));
  context.make_block = std::move(make_block);
  context.plain_nccl = env.plain_nccl;
  context.rows_ahead = env.rows_ahead.value_or(context.device != nullptr);
  context.push_log = MakePushLog(clock);
  std::optional<RowsInTrainer> rows;
  if (tables) context.own_rows = &rows.emplace(env, tls, clock).service();
  base::log::Info("computing with the unit's CPUs", {{"threads", std::to_string(env.threads)}});
  Member member(context.session, clock);
  LoadOptions load{.embedding_rows = env.spec.model.embedding_rows, .threads = env.threads};
  load.place = PlaceIn(env.samples_folder, env.samples_shared, base::MemoryLimit());
  load.say = [](const std::string& sentence) { base::log::Info(sentence); };
  Trainer trainer(context, load, [&member](pb::SessionRequest request) { member.Send(std::move(request)); });
  const std::jthread preload([&trainer](std::stop_token stop) { trainer.Preload(stop); });
  auto code = RunUntilReleased(member, trainer, signals, rows ? rows->failed() : std::stop_token());
  if (!code.ok() && rows && !rows->Error().ok()) return rows->Error();
  return code;
}

absl::StatusOr<int> RunServerRole(const Environment& env, base::Clock& clock, const Signals& signals) {
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, JobTls::Make(env, clock));
  ParameterServer service(env.token, clock);
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<RowsHost> host,
                          RowsHost::Start(env, tls, env.listen_port, service, clock));
  const ServerContext context = host->Context(env.member);
  Member member(context.session, clock);
  ServerRole role(context, service, [&member](pb::SessionRequest request) { member.Send(std::move(request)); });
  auto code = RunUntilReleased(member, role, signals, host->lost());
  if (!code.ok() && !host->Error().ok()) return host->Error();
  return code;
}

}  // namespace medley::worker
