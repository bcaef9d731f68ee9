#include "worker/app/export_job.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/data_format.h"
#include "worker/coordinator/server/log_files.h"
#include "worker/export/initial_weights.h"
#include "worker/export/read_program.h"
#include "worker/model/imported_graph.h"

namespace medley::worker {
namespace {

constexpr std::string_view kUnfinished = ".unfinished";

absl::StatusOr<Transform> TransformOf(const job::v1::FittedTransform& message, const model::SchemaSpec& schema) {
  if (static_cast<size_t>(message.columns_size()) != schema.numeric.size()) {
    return base::FailedPrecondition("the fitted transform has {} columns, the schema has {} numeric ones",
                                    message.columns_size(), schema.numeric.size());
  }
  const bool exact = message.double_precision();
  Transform transform;
  transform.single_precision = !exact;
  transform.header = {message.header().begin(), message.header().end()};
  const job::v1::FittedLabel& label = message.label();
  const double deviation = exact ? label.exact_deviation() : static_cast<double>(label.deviation());
  transform.label.mean = exact ? label.exact_mean() : static_cast<double>(label.mean());
  if (deviation > 0) transform.label.deviation = deviation;
  transform.label.log = label.log();
  if (message.weight_mean() > 0) transform.weight_mean = message.weight_mean();
  transform.label.classes = {label.classes().begin(), label.classes().end()};
  for (const job::v1::FittedColumn& column : message.columns()) {
    NumericTransform& to = transform.columns.emplace_back();
    to.log = column.log();
    to.mean = exact ? column.exact_mean() : static_cast<double>(column.mean());
    to.inverse_deviation = exact ? column.exact_inverse_deviation() : static_cast<double>(column.inverse_deviation());
    if (exact) {
      to.edges = {column.exact_edges().begin(), column.exact_edges().end()};
    } else {
      to.edges = {column.edges().begin(), column.edges().end()};
    }
  }
  return transform;
}

std::string OperationNames(const google::protobuf::RepeatedPtrField<plan::v1::OperationRange>& ranges,
                           const Graph& graph) {
  std::string names;
  for (const plan::v1::OperationRange& range : ranges) {
    for (int at = std::max(0, range.first()); at < range.end() && at < std::ssize(graph.operations); ++at) {
      names += (names.empty() ? "" : ", ") + graph.operations[static_cast<size_t>(at)].name;
    }
  }
  return names;
}

std::vector<std::string> PlanLines(const plan::v1::ExecutionPlan& plan, const Graph& graph) {
  std::vector<std::string> lines;
  for (const plan::v1::Placement& placement : plan.placements()) {
    std::string devices;
    for (const plan::v1::Replica& replica : placement.replicas()) {
      devices += (devices.empty() ? "" : ", ") + replica.device();
    }
    lines.push_back(fmt::format("{} on {}", OperationNames(placement.operations(), graph), devices));
  }
  for (int i = 0; i < plan.stages_size(); ++i) {
    const std::string layers = OperationNames(plan.stages(i).operations(), graph);
    for (const plan::v1::Group& group : plan.stages(i).groups()) {
      lines.push_back(fmt::format("stage {} ({}): {} of pool {}", i, layers, group.units(), group.pool()));
    }
  }
  if (plan.servers().in_trainers()) {
    lines.push_back(fmt::format("embedding rows: in {} trainers", plan.servers().units()));
  } else if (plan.servers().units() > 0) {
    lines.push_back(fmt::format("parameter servers: {} of pool {}", plan.servers().units(), plan.servers().pool()));
  }
  return lines;
}

// Why the job ended with this model.
std::string ChosenText(const job::v1::Observation& observation) {
  if (!observation.has_exported()) return "";
  const job::v1::ExportedState& exported = observation.exported();
  const std::string which =
      fmt::format("of step {}, after {} passes over the training data", exported.step(), exported.epochs());
  if (!exported.best()) return fmt::format("The last model of the training, {}.", which);
  const job::v1::BestModel& best = observation.best();
  const bool validation = best.data() == job::v1::EVALUATION_DATA_VALIDATION;
  std::string text = fmt::format("The best of the models that were evaluated, {}: {} {:.4f} on the {} data.", which,
                                 best.metric(), best.value(), validation ? "validation" : "test");
  if (!validation) {
    text +=
        " The test data chose it, so the figures below may be better than those of new data: data.validation keeps "
        "the two apart.";
  }
  return text;
}

// Folders that coordinators left which were killed while they wrote. One that still writes fails, and is not published.
absl::Status RemoveUnfinished(const Volume& volume) {
  MEDLEY_RETURN_IF_ERROR(volume.files().RemoveUnfinished(volume.root()));  // nothing else is written at the job's end
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, volume.files().List(volume.root()));
  for (const std::string& name : names) {
    if (name.ends_with(kUnfinished)) {
      MEDLEY_RETURN_IF_ERROR(volume.files().RemoveFolder(volume / name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExportRequest> MakeExportRequest(const Environment& env, const Graph& graph,
                                                const CheckpointManifest& checkpoint, const ExportCommand& order) {
  const model::DataSpec& data = env.spec.data;
  ExportRequest request;
  request.checkpoint = checkpoint;
  request.seed = env.spec.training.seed;
  request.folder = kExportFolder;
  request.model.schema = data.schema;
  request.model.embedding_rows = env.spec.model.embedding_rows;
  request.model.max_bad_rows = data.max_bad_rows;
  if (!data.train.arrays()) {
    const model::DataFormat* const format = model::DataFormatNamed(data.train.format);
    if (format == nullptr) return base::Unimplemented("the format '{}' is not known", data.train.format);
    request.model.delimiter = format->delimiter;
  }
  MEDLEY_ASSIGN_OR_RETURN(request.model.transform, TransformOf(order.transform, data.schema));
  MEDLEY_ASSIGN_OR_RETURN(
      request.model.graph,
      ReadPredictionGraph(env.spec, "", static_cast<int>(request.model.transform.label.classes.size())));
  if (graph.imported != nullptr) {
    const std::string& trained = graph.imported->cut->program->digest;
    if (request.model.graph.imported->cut->program->digest != trained) {
      return base::FailedPrecondition("the file of spec.model has changed since the job began");
    }
    MEDLEY_ASSIGN_OR_RETURN(request.program, ReadProgramBytes(env.spec, ""));
    request.model.output = env.spec.model.output;
    if (data.train.arrays()) request.model.array_format = data.train.format;
  }
  // Rows that no sample has used are those with which the job began.
  MEDLEY_RETURN_IF_ERROR(UseInitialWeights(env.spec, "", {}, InitialParts::kTables, request.model.graph));
  ModelCard& card = request.card;
  card.origin = {env.job_name, env.job_uid, order.step, MEDLEY_VERSION};
  card.spec = env.spec;
  card.rows = order.observation.samples_total() / std::max(1, env.spec.training.epochs);
  card.bad_rows = order.observation.bad_rows();
  card.metrics = {order.observation.metrics().begin(), order.observation.metrics().end()};
  card.chosen = ChosenText(order.observation);
  if (data.validation && data.test) {
    card.chosen_by = {order.observation.best().metrics().begin(), order.observation.best().metrics().end()};
  }
  card.usd = order.observation.usd_spent();
  card.plan = PlanLines(order.plan, graph);
  card.finished = fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(order.observation.at().seconds())));
  return request;
}

ExportModel ExporterOf(const Environment& env, const Graph& graph, std::string instance) {
  return [env, graph, instance = std::move(instance)](
             const Volume& volume, const CheckpointManifest& checkpoint, const ExportCommand& order,
             const std::function<absl::Status()>& may_publish) -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(ExportRequest request, MakeExportRequest(env, graph, checkpoint, order));
    request.temporary_name = fmt::format("{}-{}{}", kExportFolder, instance, kUnfinished);
    absl::StatusOr<std::string> text = ReadLogFiles(volume);
    if (text.ok()) request.log = *std::move(text);
    if (!text.ok()) base::log::Warn("the model is written without the log", {{"error", base::Message(text.status())}});
    request.card.has_log = !request.log.empty();
    MEDLEY_RETURN_IF_ERROR(RemoveUnfinished(volume));
    return WriteExport(volume, request, may_publish);
  };
}

}  // namespace medley::worker
