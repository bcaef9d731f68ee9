#include "worker/predict/arrays.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include "common/base/status.h"
#include "worker/data/array_dataset.h"
#include "worker/predict/compute.h"
#include "worker/predict/lines.h"
#include "worker/scores/scorer.h"

namespace medley::worker {
namespace {

constexpr int kSamplesAtOnce = 64;

std::string UriOf(const std::string& path) { return "file://" + std::filesystem::absolute(path).string(); }

std::string NamesOf(const ExportedModel& model) {
  std::string names;
  for (const model::InputSpec& input : model.schema.inputs) names += (names.empty() ? "" : ", ") + input.name;
  return names;
}

absl::Status ForEachPart(const LoadedModel& model, const model::SourceSpec& source, ReadProgress* progress,
                         absl::FunctionRef<absl::Status(const Batch&, const std::vector<float>&)> visit) {
  ArrayOptions options;
  options.progress = progress;
  options.classes = model.model.transform.label.classes;
  options.test = true;
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Compute> compute, MakeCompute(model));
  Batch part;
  std::vector<float> logits;
  const auto use = [&](Batch& piece) {
    part.shape = piece.shape;
    for (int first = 0; first < piece.samples; first += kSamplesAtOnce) {
      part.samples = std::min(kSamplesAtOnce, piece.samples - first);
      const BatchView view = piece.View(first, part.samples);
      part.ids.assign(view.ids.begin(), view.ids.end());
      part.numerics.assign(view.numerics.begin(), view.numerics.end());
      part.labels.assign(view.labels.begin(), view.labels.end());
      logits.clear();
      MEDLEY_RETURN_IF_ERROR(compute->Logits(part, logits));
      MEDLEY_RETURN_IF_ERROR(visit(part, logits));
    }
    return absl::OkStatus();
  };
  return ReadArrays(source, model.model.schema, options, use).status();
}

}  // namespace

absl::StatusOr<model::SourceSpec> ArraySourceOf(const ExportedModel& model, const std::vector<std::string>& files,
                                                const std::string& labels) {
  model::SourceSpec source{.format = model.array_format};
  if (!labels.empty()) source.labels = UriOf(labels);
  if (model.schema.inputs.size() == 1 && files.size() == 1) {
    const std::string prefix = model.schema.inputs.front().name + "=";
    source.uri = UriOf(files.front().starts_with(prefix) ? files.front().substr(prefix.size()) : files.front());
    return source;
  }
  for (const std::string& file : files) {
    const size_t end = file.find('=');
    const std::string name = file.substr(0, end);
    const bool known =
        std::ranges::find(model.schema.inputs, name, &model::InputSpec::name) != model.schema.inputs.end();
    if (end == std::string::npos || !known || !source.files.emplace(name, UriOf(file.substr(end + 1))).second) {
      return base::InvalidArgument("'{}': the files must be NAME=FILE, one for each of the model's inputs: {}", file,
                                   NamesOf(model));
    }
  }
  if (source.files.size() == model.schema.inputs.size()) return source;
  return base::InvalidArgument("there are {} files for the model's inputs: {}; each needs NAME=FILE", files.size(),
                               NamesOf(model));
}

absl::StatusOr<int64_t> PredictArrays(const LoadedModel& model, const model::SourceSpec& source,
                                      absl::FunctionRef<absl::Status(std::string_view)> write,
                                      const RowOptions& options) {
  const PredictionLines lines(model.model, options.all);
  const auto outputs = static_cast<size_t>(model.model.graph.Outputs());
  int64_t samples = 0;
  std::string text;
  const auto visit = [&](const Batch& part, const std::vector<float>& logits) {
    text.clear();
    for (size_t i = 0; i < static_cast<size_t>(part.samples); ++i) {
      lines.Append(std::span(logits).subspan(i * outputs, outputs), text);
    }
    samples += part.samples;
    return write(text);
  };
  MEDLEY_RETURN_IF_ERROR(ForEachPart(model, source, options.progress, visit));
  return samples;
}

absl::StatusOr<Quality> EvaluateArrays(const LoadedModel& model, const model::SourceSpec& source,
                                       const RowOptions& options) {
  Scorer scorer({.task = model.model.schema.task,
                 .outputs = model.model.graph.Outputs(),
                 .tokens = model.model.graph.shape.labels,
                 .deviation = model.model.transform.label.deviation});
  if (source.labels.empty() && model.model.schema.task != model::Task::kOwnLoss) {
    return base::InvalidArgument("--labels FILE: evaluating needs the labels of the samples");
  }
  Quality quality;
  const auto visit = [&](const Batch& part, const std::vector<float>& logits) {
    scorer.Add(logits, part.labels);
    quality.rows += part.samples;
    if (model.model.schema.task == model::Task::kBinary) {
      quality.positives += std::ranges::count_if(part.labels, [](float label) { return label > 0.5F; });
    }
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(ForEachPart(model, source, options.progress, visit));
  quality.metrics = MetricsOf(scorer.scores());
  quality.metrics.erase("test_samples");
  return quality;
}

}  // namespace medley::worker
