#include <string>
#include <utility>

#include "common/base/hash.h"
#include "common/base/host_port.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/model/model.h"
#include "worker/app/export_job.h"
#include "worker/app/job_identity.h"
#include "worker/app/job_tls.h"
#include "worker/app/roles.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/server/server.h"
#include "worker/model/imported_graph.h"
#include "worker/object_files/open_volume.h"
#include "worker/params/optimizer_of.h"
#include "worker/trainer/member.h"

namespace medley::worker {
namespace {

CurveOptions EvaluationOf(const model::TrainingSpec& training) {
  CurveOptions out;
  if (training.evaluation) {
    out.every_steps = training.evaluation->every_steps;
    out.every_epochs = training.evaluation->every_epochs;
  }
  if (const auto& stopping = training.early_stopping) {
    out.early_stopping = EarlyStopping{model::MetricKey(stopping->metric), stopping->patience, stopping->min_delta};
  }
  return out;
}

// What a job of a program has instead of a model and data. Its own saves are its checkpoints: a record of the
// coordinator says of which step they are.
void SetProgram(const model::ProgramSpec& program, CoordinatorOptions& options) {
  constexpr double kStopSeconds = 60;     // for ending a program and starting it again
  constexpr double kQuietSeconds = 7200;  // the agents notice earlier that a program hangs
  options.core.train_data = "the program";
  options.core.is_program = true;
  options.core.legal_units = program.legal_units;
  options.core.stall_timeout = base::FromSeconds(program.hang_seconds > 0 ? program.hang_seconds * 2 : kQuietSeconds);
  options.core.checkpoint_timeout = base::FromSeconds(program.save_seconds + kStopSeconds);
  options.core.switch_timeout = options.core.checkpoint_timeout;
  options.keeps_state = !program.save_signal.empty();
}

// What the coordinator must know of a model and its data.
absl::Status SetModel(const Environment& env, CoordinatorOptions& options) {
  options.core.train_data = env.spec.data.train.uri.empty() ? "its files" : env.spec.data.train.uri;
  for (const std::string& file : {env.spec.model.exported_uri, env.spec.model.torchscript_uri}) {
    if (!file.empty()) options.core.train_data += " and the model " + file;  // whose digest is the second part
  }
  if (env.spec.data.test) options.core.test_data = env.spec.data.test->uri;
  if (env.spec.data.validation) options.core.validation_data = env.spec.data.validation->source.uri;
  options.core.selection = {
      .metric = env.spec.export_best ? model::MetricKey(model::SelectionMetric(env.spec)) : std::string(),
      .validation = env.spec.data.validation.has_value(),
      .test = env.spec.data.test.has_value()};
  options.core.weighs_classes = env.spec.training.class_weights.has_value();
  options.core.epochs = env.spec.training.epochs;
  options.core.evaluation = EvaluationOf(env.spec.training);
  MEDLEY_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(env.spec, ""));
  options.core.model = std::make_shared<const model::Model>(graph.ToModel());
  options.tensor_board = env.spec.training.tensor_board;
  MEDLEY_ASSIGN_OR_RETURN(const Optimizer optimizer, OptimizerOf(env.spec.training));
  options.learning_rate = [optimizer](int64_t step) { return double{optimizer.AtStep(step).learning_rate}; };
  options.export_model = ExporterOf(env, graph, options.instance);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunCoordinatorRole(const Environment& env, base::Clock& clock, const Signals& signals) {
  CoordinatorOptions options;
  const JobIdentity identity = IdentityOf(env.spec_json);
  options.core.job_uid = env.job_uid;
  options.core.job_digest = identity.digest;
  options.core.batch_size = env.spec.training.batch_size;
  options.core.checkpoint_interval = base::FromSeconds(env.spec.checkpoint.interval_seconds);
  options.host = env.pod_ip;
  options.port = env.listen_port;
  options.term = env.coordinator_term;
  options.address = base::JoinHostPort(env.pod_ip, env.listen_port);
  options.instance = base::HashHex(options.address + std::to_string(base::SystemSeed()));
  // Nobody can take over without a term and a journal.
  if (options.term > 0 && !env.checkpoint_root.empty()) options.notice = kStopNotice;
  options.token = env.token;
  MEDLEY_ASSIGN_OR_RETURN(const JobTls tls, JobTls::Make(env, clock));
  options.tls = tls.credentials();
  options.checkpoint_root = env.checkpoints;
  if (env.checkpoints.of_objects()) {
    options.claim_interval = Claims(env.checkpoints).interval();
    // Now and not after an epoch. An error that passes is met again, by what bounds its wait.
    const absl::Status rights = CheckRights(env.checkpoints);
    if (IsPermanent(rights)) return base::Annotate(rights, "spec.checkpoint.uri");
    if (absl::IsFailedPrecondition(rights))
      return base::InvalidArgument("spec.checkpoint.uri: {}", base::Message(rights));
  }
  options.result_file = env.termination_log;
  options.keep_checkpoints = env.spec.checkpoint.keep;
  options.continue_from = env.continue_from;
  options.model_fingerprint = identity.model;
  options.model_settings = identity.settings;
  options.job_settings = identity.job_settings;
  options.metrics_port = env.metrics_port;
  options.metrics_token_digests = env.metrics_token_digests;
  if (env.spec.program) SetProgram(*env.spec.program, options);
  if (!env.spec.program) MEDLEY_RETURN_IF_ERROR(SetModel(env, options));
  return RunCoordinator(std::move(options), clock, signals.stop());
}

}  // namespace medley::worker
