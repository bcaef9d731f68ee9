#include "worker/predict/predict.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/predict/compute.h"
#include "worker/predict/lines.h"
#include "worker/scores/scorer.h"

namespace medley::worker {
namespace {

constexpr int kRowsAtOnce = 240;

// `compute` is made once there is a row.
absl::Status ForEachBatch(const LoadedModel& model, RowStream& stream, ReadProgress* progress,
                          std::unique_ptr<Compute>& compute,
                          absl::FunctionRef<absl::Status(const Batch&, const std::vector<float>&)> visit) {
  Batch rows;
  std::vector<float> logits;
  while (true) {
    MEDLEY_RETURN_IF_ERROR(stream.Next(kRowsAtOnce, rows));
    logits.clear();
    if (rows.samples > 0) {
      if (compute == nullptr) {
        MEDLEY_ASSIGN_OR_RETURN(compute, MakeCompute(model));
      }
      MEDLEY_RETURN_IF_ERROR(compute->Logits(rows, logits));
    }
    MEDLEY_RETURN_IF_ERROR(visit(rows, logits));
    if (progress != nullptr) progress->Parsed(rows.samples);
    if (rows.samples == 0) return absl::OkStatus();
  }
}

absl::Status NoRows(const std::string& name) { return base::InvalidArgument("{}: the data have no rows", name); }

// Adds the rows of one file after the other.
class QualityScorer {
 public:
  QualityScorer(const LoadedModel& model, const RowOptions& options)
      : model_(model),
        options_(options),
        most_bad_(options.max_bad_rows.value_or(model.model.max_bad_rows)),
        scorer_({.task = model.model.schema.task,
                 .outputs = model.model.graph.Outputs(),
                 .deviation = model.model.transform.label.deviation,
                 .mean = model.model.transform.label.mean,
                 .log = model.model.transform.label.log}) {}

  absl::Status Add(const RowSource& data) {
    BadRows& bad = quality_.bad_rows;
    RowStream stream(model_.model, RowStream::Labels::kRequired, data.name, data.read, most_bad_ - bad.count);
    const auto visit = [&](const Batch& batch, const std::vector<float>& logits) {
      if (batch.samples > 0) scorer_.Add(logits, batch.labels, batch.weights);
      quality_.weighted = quality_.weighted || !batch.weights.empty();
      if (Binary()) Count(batch, logits);
      return absl::OkStatus();
    };
    MEDLEY_RETURN_IF_ERROR(ForEachBatch(model_, stream, options_.progress, compute_, visit));
    if (bad.count == 0) bad.first = stream.first_bad();
    bad.count += stream.bad_rows();
    return absl::OkStatus();
  }

  absl::StatusOr<Quality> Finish(const std::string& name) {
    quality_.rows = scorer_.scores().samples;
    if (quality_.rows == 0) return NoRows(name);
    if (!(scorer_.scores().weight > 0)) return base::InvalidArgument("{}: the weight of every row is 0", name);
    quality_.metrics = MetricsOf(scorer_.scores());
    quality_.metrics.erase("test_samples");
    quality_.confusion = scorer_.scores().confusion;
    if (Binary()) {
      quality_.confusion = confusion_;
      quality_.poorly_calibrated = quality_.metrics.at("calibrationError") > kPoorCalibration;
    }
    return std::move(quality_);
  }

 private:
  bool Binary() const { return model_.model.schema.task == model::Task::kBinary; }

  void Count(const Batch& batch, const std::vector<float>& logits) {
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      ++confusion_[(batch.labels[i] > 0.5F ? 2 : 0) + (logits[i] >= 0 ? 1 : 0)];
    }
    quality_.positives += std::ranges::count_if(batch.labels, [](float label) { return label > 0.5F; });
  }

  const LoadedModel& model_;
  const RowOptions& options_;
  const int64_t most_bad_;
  Scorer scorer_;
  std::unique_ptr<Compute> compute_;
  Quality quality_;
  std::vector<int64_t> confusion_ = std::vector<int64_t>(4);  // of rows, whatever their weights are
};

}  // namespace

absl::StatusOr<int64_t> Predict(const LoadedModel& model, const RowSource& data,
                                absl::FunctionRef<absl::Status(std::string_view)> write, const RowOptions& options,
                                BadRows* bad_rows) {
  RowStream stream(model.model, RowStream::Labels::kIgnored, data.name, data.read,
                   options.max_bad_rows.value_or(model.model.max_bad_rows));
  const PredictionLines lines(model.model, options.all);
  const auto outputs = static_cast<size_t>(model.model.graph.Outputs());
  int64_t rows = 0;
  std::string text;
  const auto visit = [&](const Batch& batch, const std::vector<float>& logits) {
    text.clear();
    const std::vector<int64_t>& skipped = stream.skipped();
    for (size_t row = 0; row < static_cast<size_t>(batch.samples); ++row) {
      text.append(static_cast<size_t>(skipped[row]), '\n');
      lines.Append(std::span(logits).subspan(row * outputs, outputs), text);
    }
    text.append(static_cast<size_t>(skipped.back()), '\n');
    rows += batch.samples;
    return text.empty() ? absl::OkStatus() : write(text);
  };
  std::unique_ptr<Compute> compute;
  MEDLEY_RETURN_IF_ERROR(ForEachBatch(model, stream, options.progress, compute, visit));
  if (bad_rows != nullptr) *bad_rows = {stream.bad_rows(), stream.first_bad()};
  if (rows == 0) return NoRows(data.name);
  return rows;
}

absl::StatusOr<Quality> EvaluateQuality(const LoadedModel& model, const std::vector<RowSource>& data,
                                        const RowOptions& options) {
  QualityScorer scorer(model, options);
  for (const RowSource& file : data) MEDLEY_RETURN_IF_ERROR(scorer.Add(file));
  return scorer.Finish(data.empty() ? "the data" : data.front().name);
}

}  // namespace medley::worker
