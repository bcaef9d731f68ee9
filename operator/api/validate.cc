#include "operator/api/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>

#include "common/base/clock.h"
#include "common/base/quantity.h"
#include "common/model/task.h"
#include "kube/json_access.h"
#include "operator/api/bounds.h"
#include "operator/api/training_job.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr double kMostUsd = 1e9;
constexpr double kLeastUsd = 1e-9;                  // a quantity has no smaller one
constexpr double kLongestInterval = 8760.0 * 3600;  // a year

// Returns null when the value is absent.
const Json& At(const Json& json, const char* pointer) { return kube::ValueAt(json, pointer); }
bool Has(const Json& json, const char* pointer) { return !At(json, pointer).is_null(); }
std::string TextAt(const Json& json, const char* pointer) {
  const Json& value = At(json, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}
double Number(const Json& json, const char* pointer, double fallback) {
  const Json& value = At(json, pointer);
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto parsed = base::ParseQuantity(value.get<std::string>());
    if (parsed.ok()) return *parsed;
  }
  return fallback;
}
// A duration in seconds; -1 when the value is absent or is not a duration.
double Seconds(const Json& json, const char* pointer) {
  const auto parsed = base::ParseDuration(TextAt(json, pointer));
  return parsed.ok() ? base::ToSeconds(*parsed) : -1;
}
// The numbers and names of columns, as JSON.
std::set<std::string> Columns(const Json& json, const char* pointer) {
  std::set<std::string> columns;
  for (const Json& item : At(json, pointer)) columns.insert(kube::Dump(item));
  return columns;
}

class Rules {
 public:
  void Require(bool holds, const std::string& sentence) {
    if (!holds) broken_.push_back(sentence);
  }
  std::vector<std::string> Take() { return std::move(broken_); }

 private:
  std::vector<std::string> broken_;
};

// `part`: "data" or "checkpoint".
void CheckHostPath(Rules& rules, const Json& spec, const std::string& part) {
  const std::string pointer = "/" + part + "/volume/hostPath/path";
  rules.Require(!Has(spec, pointer.c_str()) || TextAt(spec, pointer.c_str()).starts_with("/"),
                "spec." + part +
                    ".volume.hostPath.path must be absolute: only medley run knows the folder that a relative path "
                    "begins with");
}

void CheckJobName(Rules& rules, const std::string& name) {
  rules.Require(name.size() <= 40, "metadata.name must be at most 40 characters, because pod names are made from it");
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto allowed = [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '-'; };
  rules.Require(
      !name.empty() && lower(name.front()) && name.back() != '-' && std::all_of(name.begin(), name.end(), allowed),
      "metadata.name must begin with a letter and hold only lower-case letters, digits "
      "and hyphens, because a Service is named after it");
}

bool FromPyTorch(const Json& spec) { return Has(spec, "/model/exported") || Has(spec, "/model/torchScript"); }

void CheckModel(Rules& rules, const Json& object, const Json& spec) {
  const auto count = [&](std::initializer_list<const char*> fields) {
    return std::ranges::count_if(fields, [&](const char* field) { return Has(spec, field); });
  };
  rules.Require(count({"/model/name", "/model/layers", "/model/exported", "/model/torchScript"}) == 1,
                "spec.model must have exactly one of name, layers, exported and torchScript");
  rules.Require(!Has(object, "/spec/model/parameters") || !Has(spec, "/model/layers"),
                "spec.model.parameters go with a name or a model from PyTorch, not with layers");
  rules.Require(FromPyTorch(spec) || count({"/model/cut", "/model/output"}) == 0,
                "spec.model.cut and spec.model.output go with spec.model.exported and torchScript");
  rules.Require(TextAt(spec, "/model/task") != "ownLoss" || FromPyTorch(spec),
                "spec.model.task ownLoss is for models from PyTorch");
  rules.Require(count({"/model/cut/depth", "/model/cut/modules", "/model/cut/finest"}) <= 1,
                "spec.model.cut must have at most one of depth, modules and finest");
  const std::string name = TextAt(spec, "/model/name");
  rules.Require(Number(spec, "/model/parameters/dropout", 0) == 0 || (!name.empty() && name != "logistic"),
                "spec.model.parameters.dropout goes with the hidden layers of ctrdnn, mlp, residual and two-tower");
  const Json& layers = At(spec, "/model/layers");
  const auto is = [](const Json& layer, const char* kind) { return TextAt(layer, "/kind") == kind; };
  rules.Require(std::ranges::all_of(layers,
                                    [&](const Json& layer) {
                                      return is(layer, "Loss") || is(layer, "Dropout") || Number(layer, "/out", 0) > 0;
                                    }),
                "a layer of spec.model.layers needs out, its number of outputs, unless its kind is Dropout or Loss");
  rules.Require(
      std::ranges::all_of(layers, [&](const Json& layer) { return is(layer, "Dropout") == Has(layer, "/fraction"); }),
      "fraction of a layer of spec.model.layers goes with the kind Dropout, and only with it");
}

// Rows of a table, or else arrays.
bool IsTable(const Json& spec, const std::string& source) {
  const std::string format = TextAt(spec, ("/data/" + source + "/format").c_str());
  return format != "idx" && format != "npy" && format != "raw";
}

// `source`: train, validation or test.
void CheckSource(Rules& rules, const Json& spec, const std::string& source) {
  const std::string pointer = "/data/" + source;
  if (!Has(spec, pointer.c_str())) return;
  const auto has = [&](const char* field) { return Has(spec, (pointer + field).c_str()); };
  if (source == "validation") {
    const int ways = (has("/uri") ? 1 : 0) + (has("/files") ? 1 : 0) + (has("/fraction") ? 1 : 0);
    rules.Require(ways == 1, "spec.data.validation must have exactly one of fraction, uri and files");
    const double fraction = Number(spec, "/data/validation/fraction", 0.5);
    rules.Require(fraction > 0 && fraction < 1, "spec.data.validation.fraction must be greater than 0 and less than 1");
    rules.Require(has("/fraction") != has("/format"),
                  "spec.data.validation.format goes with uri and files, and only with them");
    rules.Require(!has("/seed") || has("/fraction"), "spec.data.validation.seed goes with fraction");
  } else {
    rules.Require(has("/uri") != has("/files"),
                  fmt::format("spec.data.{} must have exactly one of uri and files", source));
  }
  rules.Require(!has("/uri") || TextAt(spec, (pointer + "/uri").c_str()).starts_with("file:///"),
                fmt::format("spec.data.{}.uri must begin with file:///", source));
  const bool table = IsTable(spec, source) && (source != "validation" || has("/format"));
  rules.Require(!table || (!has("/files") && !has("/labels")),
                fmt::format("spec.data.{}.files and labels go with the formats idx, npy and raw", source));
}

void CheckInputs(Rules& rules, const Json& spec) {
  const bool inputs = Has(spec, "/data/inputs");
  const bool table = IsTable(spec, "train");
  const bool own_loss = TextAt(spec, "/model/task") == "ownLoss";
  rules.Require(inputs != (Has(spec, "/data/schema/categorical") || Has(spec, "/data/schema/numeric") ||
                           Has(spec, "/data/schema/dates")),
                "spec.data must have either inputs, or a schema that names categorical or numeric columns");
  rules.Require(inputs || (table && !Has(spec, "/model/torchScript")),
                "spec.data.inputs are needed for spec.model.torchScript and for the formats idx, npy and raw");
  rules.Require(!inputs || FromPyTorch(spec),
                "spec.data.inputs go with spec.model.exported and torchScript, whose arguments have names");
  rules.Require(!Has(spec, "/data/test") || IsTable(spec, "test") == table,
                "spec.data.test must be a table if spec.data.train is one, and arrays if that is");
  rules.Require(!Has(spec, "/data/validation/format") || IsTable(spec, "validation") == table,
                "spec.data.validation must be a table if spec.data.train is one, and arrays if that is");
  rules.Require(table || own_loss != Has(spec, "/data/train/labels"),
                "spec.data.train.labels are needed for the formats idx, npy and raw, but not for spec.model.task "
                "ownLoss");
  const bool columns = Has(spec, "/data/schema/label/column") || Has(spec, "/data/schema/label/columns");
  rules.Require(!table || own_loss != columns,
                "spec.data.schema.label needs column or columns for the formats csv and tsv, but must be absent for "
                "spec.model.task ownLoss");
  rules.Require(table || (!columns && !Has(spec, "/data/schema/label/positive")),
                "spec.data.schema.label.column, columns and positive go with the formats csv and tsv");
  for (const Json& input : At(spec, "/data/inputs")) {
    const std::string type = TextAt(input, "/type");
    const bool changes = Has(input, "/scale") || Has(input, "/mean") || Has(input, "/std");
    rules.Require(type == "float32" || !changes, "scale, mean and std of spec.data.inputs go with the type float32");
    rules.Require(Has(input, "/columns") != Has(input, "/shape"),
                  "an input of spec.data.inputs must have exactly one of columns and shape");
    rules.Require(type != "category" || Has(input, "/columns"),
                  "the type category of spec.data.inputs goes with columns");
    rules.Require(Has(input, "/columns") == table,
                  "spec.data.inputs have columns for the formats csv and tsv, and a shape for idx, npy and raw");
  }
}

void CheckData(Rules& rules, const Json& spec) {
  CheckSource(rules, spec, "train");
  CheckSource(rules, spec, "test");
  CheckSource(rules, spec, "validation");
  CheckInputs(rules, spec);
  const std::set<std::string> categorical = Columns(spec, "/data/schema/categorical");
  const std::set<std::string> numeric = Columns(spec, "/data/schema/numeric");
  rules.Require(!Has(spec, "/data/schema/label/column") || !Has(spec, "/data/schema/label/columns"),
                "spec.data.schema.label must not have both column and columns");
  std::set<std::string> labels = Columns(spec, "/data/schema/label/columns");
  if (Has(spec, "/data/schema/label/column")) labels.insert(kube::Dump(At(spec, "/data/schema/label/column")));
  const std::set<std::string> dates = Columns(spec, "/data/schema/dates");
  // A range of numbers, "1..784", names no column.
  const auto is_name = [](const std::string& column) {
    return column.starts_with('"') &&
           !(column.find("..") != std::string::npos && column.find_first_not_of("\"0123456789.") == std::string::npos);
  };
  const auto names = [&](const std::set<std::string>& columns) { return std::ranges::any_of(columns, is_name); };
  rules.Require(At(spec, "/data/schema/header") == true ||
                    !(names(labels) || names(categorical) || names(numeric) || names(dates)),
                "spec.data.schema names columns, which needs header: true");
  const auto share = [](const std::set<std::string>& a, const std::set<std::string>& b) {
    return std::ranges::any_of(a, [&](const std::string& column) { return b.contains(column); });
  };
  const Json& weight = At(spec, "/data/weight");
  rules.Require(weight.is_null() || IsTable(spec, "train"), "spec.data.weight goes with the formats csv and tsv");
  const std::string column = kube::Dump(weight);
  rules.Require(weight.is_null() || !(categorical.contains(column) || numeric.contains(column) ||
                                      dates.contains(column) || labels.contains(column)),
                "spec.data.weight must not be a column of spec.data.schema");
  rules.Require(weight.is_null() || weight.is_number_integer() || At(spec, "/data/schema/header") == true,
                "spec.data.weight names a column, which needs spec.data.schema.header: true");
  rules.Require(!share(labels, categorical), "spec.data.schema.categorical must not hold the label's column");
  rules.Require(!share(labels, numeric), "spec.data.schema.numeric must not hold the label's column");
  rules.Require(!share(categorical, numeric), "a column of spec.data.schema must not be both categorical and numeric");
  rules.Require(Number(spec, "/data/schema/numericBuckets", 0) == 0 || Has(spec, "/data/schema/numeric") ||
                    Has(spec, "/data/schema/dates"),
                "spec.data.schema.numericBuckets needs numeric columns");
  rules.Require(!Has(spec, "/data/volume") || TextAt(spec, "/data/volume/mountPath").rfind('/', 0) == 0,
                "spec.data.volume.mountPath must be absolute");
  CheckHostPath(rules, spec, "data");
}

void CheckTask(Rules& rules, const Json& spec) {
  const std::string named = TextAt(spec, "/model/task");
  const std::string task = named.empty() ? "binary" : named;
  rules.Require(!Has(spec, "/model/loss") || task == "regression",
                "spec.model.loss goes with spec.model.task regression");
  rules.Require(!IsTable(spec, "train") || (task == "multiLabel") == Has(spec, "/data/schema/label/columns"),
                "spec.data.schema.label.columns go with spec.model.task multiLabel, and only with it");
  rules.Require(!Has(spec, "/data/schema/label/positive") || task == "binary",
                "spec.data.schema.label.positive goes with spec.model.task binary");
  const std::string transform = TextAt(spec, "/data/schema/label/transform");
  rules.Require(
      transform.empty() || transform == "None" || (task == "regression" && IsTable(spec, "train")),
      "spec.data.schema.label.transform Log1p goes with spec.model.task regression and the formats csv and tsv");
  rules.Require(!Has(spec, "/data/schema/label/classes") || task == "multiClass",
                "spec.data.schema.label.classes go with spec.model.task multiClass");
  rules.Require(!Has(spec, "/training/classWeights") || task == "binary" || task == "multiClass",
                "spec.training.classWeights go with spec.model.task binary or multiClass");
  const Json& balanced = At(spec, "/training/classWeights/balanced");
  rules.Require(!Has(spec, "/training/classWeights") ||
                    (balanced.is_boolean() && balanced.get<bool>()) != Has(spec, "/training/classWeights/weights"),
                "spec.training.classWeights must have exactly one of balanced: true and weights");
  const std::vector<std::string> metrics = model::TaskMetrics(model::TaskNamed(task).value_or(model::Task::kBinary));
  for (const char* const field : {"earlyStopping", "evaluation"}) {
    const std::string metric = TextAt(spec, fmt::format("/training/{}/metric", field).c_str());
    rules.Require(
        metric.empty() || std::ranges::find(metrics, metric) != metrics.end(),
        fmt::format("spec.training.{}.metric must be one of the task: auc, prAuc, logLoss and accuracy of "
                    "classes and labels, also f1 and balancedAccuracy of classes, calibrationError of binary, "
                    "top5Accuracy of multiClass; "
                    "mse, rmse, mae and r2 of regression; loss of ownLoss",
                    field));
  }
}

bool HasTables(const Json& spec) {
  const std::string name = TextAt(spec, "/model/name");
  if (!name.empty()) return name != "mlp";
  const Json& layers = At(spec, "/model/layers");
  return std::ranges::any_of(layers, [](const Json& layer) { return TextAt(layer, "/kind") == "Embedding"; });
}

void CheckTrainingAndGoal(Rules& rules, const Json& spec) {
  rules.Require(Number(spec, "/training/microBatches", 1) <= Number(spec, "/training/batchSize", 1),
                "spec.training.microBatches must not exceed spec.training.batchSize");
  rules.Require(Number(spec, "/training/optimizer/learningRate", 1) > 0,
                "spec.training.optimizer.learningRate must be greater than 0");
  const std::string optimizer = TextAt(spec, "/training/optimizer/name");
  rules.Require((!Has(spec, "/training/optimizer/beta1") && !Has(spec, "/training/optimizer/beta2")) ||
                    optimizer == "adam" || optimizer == "adamw",
                "only the optimizers adam and adamw have spec.training.optimizer.beta1 and beta2");
  rules.Require(!Has(spec, "/training/optimizer/epsilon") ||
                    (Number(spec, "/training/optimizer/epsilon", 0) > 0 && optimizer != "sgd"),
                "spec.training.optimizer.epsilon must be greater than 0 and needs another optimizer than sgd");
  const double momentum = Number(spec, "/training/optimizer/momentum", 0);
  rules.Require(!Has(spec, "/training/optimizer/momentum") || optimizer == "sgd" || optimizer == "rmsprop",
                "only the optimizers sgd and rmsprop have spec.training.optimizer.momentum");
  rules.Require(!Has(spec, "/training/optimizer/alpha") || optimizer == "rmsprop",
                "only the optimizer rmsprop has spec.training.optimizer.alpha");
  const Json& nesterov = At(spec, "/training/optimizer/nesterov");
  rules.Require(!nesterov.is_boolean() || !nesterov.get<bool>() || (optimizer == "sgd" && momentum > 0),
                "spec.training.optimizer.nesterov needs sgd with a momentum greater than 0");
  rules.Require(!Has(spec, "/training/optimizer/rowDecay") || HasTables(spec) || FromPyTorch(spec),
                "spec.training.optimizer.rowDecay needs a model with embedding tables");
  rules.Require(
      (optimizer != "rmsprop" && momentum <= 0) || !HasTables(spec),
      "spec.training.optimizer rmsprop and momentum need a model without embedding tables: mlp, one from PyTorch, or "
      "layers without Embedding");
  const bool clips = Has(spec, "/training/clipNorm");
  rules.Require(
      !clips || !HasTables(spec),
      "spec.training.clipNorm needs a model without embedding tables: mlp, one from PyTorch, or layers without "
      "Embedding");
  rules.Require(!clips || TextAt(spec, "/planner/parallelism/schedule") != "ASYNC_1F1B",
                "spec.training.clipNorm needs another schedule than ASYNC_1F1B");
  rules.Require(!clips || !Has(spec, "/training/sync/mode") || TextAt(spec, "/training/sync/mode") == "Full",
                "spec.training.clipNorm needs spec.training.sync.mode Full");
  const std::string curve = TextAt(spec, "/training/optimizer/schedule/kind");
  rules.Require(curve != "step" || Has(spec, "/training/optimizer/schedule/everySteps"),
                "spec.training.optimizer.schedule of the kind step needs everySteps");
  rules.Require(curve != "cosine" || Has(spec, "/training/optimizer/schedule/steps"),
                "spec.training.optimizer.schedule of the kind cosine needs steps");
  rules.Require(!Has(spec, "/training/evaluation") ||
                    Has(spec, "/training/evaluation/everyEpochs") != Has(spec, "/training/evaluation/everySteps"),
                "spec.training.evaluation must have exactly one of everyEpochs and everySteps");
  rules.Require(!Has(spec, "/training/evaluation") || Has(spec, "/data/test") || Has(spec, "/data/validation"),
                "spec.training.evaluation needs spec.data.validation or spec.data.test");
  const Json& board = At(spec, "/training/tensorBoard");
  rules.Require(!board.is_boolean() || !board.get<bool>() || Has(spec, "/checkpoint/volume"),
                "spec.training.tensorBoard needs spec.checkpoint.volume, into which the event files are written");
  rules.Require(!Has(spec, "/training/earlyStopping") || Has(spec, "/training/evaluation"),
                "spec.training.earlyStopping needs spec.training.evaluation");
  const double deadline = Seconds(spec, "/objective/deadline");
  rules.Require(!Has(spec, "/objective/deadline") || (deadline > 0 && deadline <= kLongestSeconds),
                "spec.objective.deadline must be a duration greater than 0 and at most 87600h, as in 2h or 90m");
  const auto is_amount = [&](const char* field) {
    const double usd = Number(spec, field, 0);
    return !Has(spec, field) || (usd > 0 && usd <= kMostUsd);
  };
  rules.Require(is_amount("/objective/budgetUsd"),
                "spec.objective.budgetUsd must be greater than 0 and at most 1000000000");
  rules.Require(is_amount("/objective/maxUsdPerHour"),
                "spec.objective.maxUsdPerHour must be greater than 0 and at most 1000000000");
  const bool fastest = At(spec, "/objective/fastest") == true;
  const std::string minimize = TextAt(spec, "/objective/minimize");
  rules.Require(!fastest || minimize.empty() || minimize == "Seconds",
                "spec.objective.fastest is minimize: Seconds, so there cannot be another minimize");
  const double wait = Seconds(spec, "/profiling/wait");
  rules.Require(wait >= 0 && wait <= 3600, "spec.profiling.wait must be at least 0 and at most 1h");
  const bool asynchronous = TextAt(spec, "/planner/parallelism/schedule") == "ASYNC_1F1B";
  rules.Require(
      !asynchronous || !HasTables(spec),
      "spec.planner.parallelism.schedule ASYNC_1F1B needs a model without embedding tables: mlp, one from PyTorch, or "
      "layers without Embedding");
  const std::string mode = TextAt(spec, "/training/sync/mode");
  rules.Require(
      mode.empty() || mode == "Full" || !HasTables(spec),
      "spec.training.sync.mode other than Full needs a model without embedding tables: mlp, one from PyTorch, or "
      "layers without Embedding");
  rules.Require((mode == "Percentage") == Has(spec, "/training/sync/fraction"),
                "spec.training.sync.fraction goes with the mode Percentage, and only with it");
  rules.Require(!Has(spec, "/training/sync/targetRatio") || mode == "Flexible",
                "spec.training.sync.targetRatio goes with the mode Flexible");
  rules.Require(Number(spec, "/training/sync/fraction", 1) > 0, "spec.training.sync.fraction must be greater than 0");
  rules.Require(Number(spec, "/training/sync/targetRatio", 1) > 0,
                "spec.training.sync.targetRatio must be greater than 0");
  rules.Require(Number(spec, "/training/sync/anomaly/threshold", 1) > 0,
                "spec.training.sync.anomaly.threshold must be greater than 0");
  rules.Require(TextAt(spec, "/training/sync/hierarchy") != "Pool" || mode.empty() || mode == "Full",
                "spec.training.sync.hierarchy Pool needs the mode Full: replicas that differ are all in one pool");
  rules.Require(asynchronous || Number(spec, "/planner/parallelism/maxStaleness", 0) == 0,
                "spec.planner.parallelism.maxStaleness goes with the schedule ASYNC_1F1B");
  const double budget = Seconds(spec, "/planner/timeBudget");
  rules.Require(budget > 0 && budget <= 600, "spec.planner.timeBudget must be greater than 0 and at most 10m");
}

void CheckResources(Rules& rules, const Json& spec) {
  std::vector<std::string> pools;
  for (const Json& item : At(spec, "/resources/pools")) {
    if (item.is_string()) pools.push_back(item.get<std::string>());
  }
  const std::string server_pool = TextAt(spec, "/resources/serverPool");
  rules.Require(
      server_pool.empty() || pools.empty() || std::find(pools.begin(), pools.end(), server_pool) != pools.end(),
      "spec.resources.serverPool must be one of spec.resources.pools");
  rules.Require(std::set<std::string>(pools.begin(), pools.end()).size() == pools.size(),
                "spec.resources.pools must not name a pool twice");
  rules.Require(Number(spec, "/elasticity/minUnits", 1) <= Number(spec, "/elasticity/maxUnits", 64),
                "spec.elasticity.minUnits must not exceed spec.elasticity.maxUnits");
  const double cooldown = Seconds(spec, "/elasticity/replan/cooldown");
  rules.Require(cooldown >= 0 && cooldown <= kLongestInterval, "spec.elasticity.replan.cooldown must be at most 8760h");
  std::string saving = TextAt(spec, "/elasticity/replan/minSaving");
  if (!saving.empty() && saving.back() == '%') saving.pop_back();
  const auto percent = base::ParseQuantity(saving);
  rules.Require(!percent.ok() || *percent <= 100, "spec.elasticity.replan.minSaving must be at most 100%");
}

// False for volume sources that give each pod its own copy or that pods cannot write. Other sources may be shared; only
// the cluster knows whether a claim is ReadWriteMany or whether a host path is the same file system on every node.
bool IsShared(const Json& volume) {
  static constexpr std::array kPrivate = {"emptyDir", "ephemeral", "gitRepo",     "configMap",
                                          "secret",   "projected", "downwardAPI", "image"};
  return std::none_of(kPrivate.begin(), kPrivate.end(), [&](const char* source) { return volume.contains(source); });
}

bool AnyEntry(const Json& list, const std::function<bool(const Json&)>& is) {
  return list.is_array() && std::any_of(list.begin(), list.end(), is);
}

// `path`: of a template with metadata and spec, as in "spec.template.servers".
void CheckTemplate(Rules& rules, const Json& pod, const std::string& path) {
  bool own_label = false;
  if (const Json& labels = At(pod, "/metadata/labels"); labels.is_object()) {
    for (const auto& [name, value] : labels.items()) own_label = own_label || name.starts_with("medley.dev/");
  }
  rules.Require(!own_label, path + ".metadata.labels must not begin with medley.dev/");
  rules.Require(!Has(pod, "/spec/restartPolicy") && !Has(pod, "/spec/nodeName"),
                path + ".spec must not set restartPolicy or nodeName: Medley and the scheduler decide them");
  const auto is_worker = [](const Json& container) { return TextAt(container, "/name") == "worker"; };
  rules.Require(
      !AnyEntry(At(pod, "/spec/containers"),
                [&](const Json& each) { return Has(each, "/args") && (!Has(each, "/name") || is_worker(each)); }),
      path + ".spec.containers must not set args of the container worker: Medley does");
  rules.Require(!AnyEntry(At(pod, "/spec/initContainers"), is_worker),
                path + ".spec.initContainers must not hold a container named worker: that is Medley's");
}

void CheckRunPolicy(Rules& rules, const Json& spec) {
  rules.Require(TextAt(spec, "/runPolicy/managedBy").find('/') != std::string::npos,
                "spec.runPolicy.managedBy must be a domain-prefixed name, as in medley.dev/operator");
  const std::string pod_group = TextAt(spec, "/runPolicy/schedulingPolicy/podGroup");
  rules.Require(pod_group == "Auto" || pod_group == "None" || Has(spec, "/runPolicy/schedulingPolicy/schedulerName"),
                "spec.runPolicy.schedulingPolicy.podGroup needs schedulerName: the default "
                "scheduler knows no PodGroups");
  const double interval = Seconds(spec, "/checkpoint/interval");
  rules.Require(interval >= 1 && interval <= kLongestInterval,
                "spec.checkpoint.interval must be at least 1s and at most 8760h");
  rules.Require(!Has(spec, "/checkpoint/volume") || TextAt(spec, "/checkpoint/volume/mountPath").rfind('/', 0) == 0,
                "spec.checkpoint.volume.mountPath must be absolute");
  CheckHostPath(rules, spec, "checkpoint");
  const std::string from = TextAt(spec, "/checkpoint/from");
  rules.Require(from.empty() || from.starts_with("/") || from.starts_with("file:///"),
                "spec.checkpoint.from must be an absolute path or begin with file:///");
  rules.Require(from.empty() || Has(spec, "/checkpoint/volume"),
                "spec.checkpoint.from needs spec.checkpoint.volume, into which the checkpoint is copied");
  rules.Require(IsShared(At(spec, "/checkpoint/volume")),
                "spec.checkpoint.volume must be one that every pod of the job can write and the "
                "next pod finds again: not emptyDir, ephemeral, gitRepo, configMap, secret, "
                "downwardAPI, projected or image");
  rules.Require(!Has(spec, "/template/spec/restartPolicy") || TextAt(spec, "/template/spec/restartPolicy") == "Never",
                "spec.template.spec.restartPolicy must be Never or absent: the operator replaces pods");
  for (const char* role : {"coordinator", "servers", "trainers"}) {
    CheckTemplate(rules, At(spec, ("/template/" + std::string(role)).c_str()), "spec.template." + std::string(role));
  }
}

}  // namespace

std::vector<std::string> ValidateTrainingJob(const kube::Object& job) {
  Rules rules;
  Json spec = job.At("/spec");
  if (!spec.is_object()) return {"spec must be an object"};
  ApplyJobDefaults(spec);
  CheckJobName(rules, job.key().name);
  CheckModel(rules, job.json(), spec);
  CheckData(rules, spec);
  CheckTask(rules, spec);
  CheckTrainingAndGoal(rules, spec);
  CheckResources(rules, spec);
  CheckRunPolicy(rules, spec);
  return rules.Take();
}

std::vector<std::string> ValidateResourcePool(const kube::Object& pool) {
  Rules rules;
  const Json& json = pool.json();
  const std::string name = pool.key().name;
  rules.Require(name.size() <= 40, "metadata.name must be at most 40 characters, because pod names are made from it");
  rules.Require(name.find('.') == std::string::npos,
                "metadata.name must not contain a dot, because pod names are made from it");
  const auto& env = At(json, "/spec/unit/env");
  const auto is_ours = [](const Json& variable) {
    const std::string variable_name = TextAt(variable, "/name");
    return variable_name.starts_with("MEDLEY_") && variable_name != "MEDLEY_DEVICE" &&
           variable_name != "MEDLEY_PLAIN_NCCL";
  };
  rules.Require(std::none_of(env.begin(), env.end(), is_ours),
                "spec.unit.env must not set a variable that begins with MEDLEY_, except MEDLEY_DEVICE and "
                "MEDLEY_PLAIN_NCCL");
  CheckTemplate(rules, At(json, "/spec/template"), "spec.template");
  const double timeout = Has(json, "/spec/provisionTimeout") ? Seconds(json, "/spec/provisionTimeout") : 900;
  rules.Require(timeout >= 1 && timeout <= 86400, "spec.provisionTimeout must be at least 1s and at most 24h");
  rules.Require(Has(json, "/spec/price/usdPerUnitHour") != Has(json, "/spec/price/offering"),
                "spec.price must have exactly one of usdPerUnitHour and offering");
  const double usd = Number(json, "/spec/price/usdPerUnitHour", 0);
  rules.Require(!Has(json, "/spec/price/usdPerUnitHour") || (usd >= kLeastUsd && usd <= kMostUsd),
                "spec.price.usdPerUnitHour must be at least 0.000000001 and at most 1000000000");
  rules.Require(Number(json, "/spec/price/offering/unitsPerInstance", 1) > 0,
                "spec.price.offering.unitsPerInstance must be greater than 0");
  return rules.Take();
}

std::vector<std::string> ValidateTrainingJobUpdate(const Json& before, const Json& after) {
  Rules rules;
  Json old_spec = before;
  Json new_spec = after;
  ApplyJobDefaults(old_spec);
  ApplyJobDefaults(new_spec);
  const auto same = [&](const char* pointer) { return At(old_spec, pointer) == At(new_spec, pointer); };
  rules.Require(same("/model"), "spec.model is immutable; make a new TrainingJob for another model");
  rules.Require(same("/data/train") && same("/data/test") && same("/data/validation") && same("/data/schema"),
                "spec.data is immutable; make a new TrainingJob for other data");
  rules.Require(same("/training"), "spec.training is immutable; make a new TrainingJob to train in another way");
  rules.Require(same("/export"), "spec.export is immutable; make a new TrainingJob to export another model");
  rules.Require(same("/runPolicy/managedBy"), "spec.runPolicy.managedBy is immutable");
  return rules.Take();
}

}  // namespace medley::ops
