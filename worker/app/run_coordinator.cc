#include <string>
#include <utility>

#include "common/base/hash.h"
#include "common/base/host_port.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/app/export_job.h"
#include "worker/app/job_identity.h"
#include "worker/app/job_tls.h"
#include "worker/app/roles.h"
#include "worker/coordinator/server/server.h"
#include "worker/model/imported_graph.h"
#include "worker/params/optimizer_of.h"

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

}  // namespace

absl::StatusOr<int> RunCoordinatorRole(const Environment& env, base::Clock& clock, const Signals& signals) {
  CoordinatorOptions options;
  const JobIdentity identity = IdentityOf(env.spec_json);
  options.core.job_uid = env.job_uid;
  options.core.job_digest = identity.digest;
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
  options.core.batch_size = env.spec.training.batch_size;
  options.core.evaluation = EvaluationOf(env.spec.training);
  const absl::StatusOr<Graph> graph = ReadGraph(env.spec, "");
  if (!graph.ok()) return graph.status();
  options.core.model = graph->ToModel();
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
  options.checkpoint_root = env.checkpoint_root;
  options.result_file = env.termination_log;
  options.keep_checkpoints = env.spec.checkpoint.keep;
  options.continue_from = env.continue_from;
  options.model_fingerprint = identity.model;
  options.model_settings = identity.settings;
  options.job_settings = identity.job_settings;
  options.tensor_board = env.spec.training.tensor_board;
  MEDLEY_ASSIGN_OR_RETURN(const Optimizer optimizer, OptimizerOf(env.spec.training));
  options.learning_rate = [optimizer](int64_t step) { return double{optimizer.AtStep(step).learning_rate}; };
  options.metrics_port = env.metrics_port;
  options.metrics_token_digests = env.metrics_token_digests;
  options.export_model = ExporterOf(env, *graph, options.instance);
  return RunCoordinator(std::move(options), clock, signals.stop());
}

}  // namespace medley::worker
