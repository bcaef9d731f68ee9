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

absl::Status ForEachBatch(const LoadedModel& model, RowStream& stream,
                          absl::FunctionRef<absl::Status(const Batch&, const std::vector<float>&)> visit) {
  std::unique_ptr<Compute> compute;  // once there is a row
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
    if (rows.samples == 0) return absl::OkStatus();
  }
}

absl::Status NoRows(const std::string& name) { return base::InvalidArgument("{}: the data have no rows", name); }

}  // namespace

absl::StatusOr<int64_t> Predict(const LoadedModel& model, const std::string& name, RowStream::Read read,
                                absl::FunctionRef<absl::Status(std::string_view)> write, bool all,
                                std::optional<int64_t> max_bad_rows, BadRows* bad_rows) {
  RowStream stream(model.model, RowStream::Labels::kIgnored, name, std::move(read),
                   max_bad_rows.value_or(model.model.max_bad_rows));
  const PredictionLines lines(model.model, all);
  const auto outputs = static_cast<size_t>(model.model.graph.Outputs());
  int64_t rows = 0;
  std::string text;
  MEDLEY_RETURN_IF_ERROR(ForEachBatch(model, stream, [&](const Batch& batch, const std::vector<float>& logits) {
    text.clear();
    const std::vector<int64_t>& skipped = stream.skipped();
    for (size_t row = 0; row < static_cast<size_t>(batch.samples); ++row) {
      text.append(static_cast<size_t>(skipped[row]), '\n');
      lines.Append(std::span(logits).subspan(row * outputs, outputs), text);
    }
    text.append(static_cast<size_t>(skipped.back()), '\n');
    rows += batch.samples;
    return text.empty() ? absl::OkStatus() : write(text);
  }));
  if (bad_rows != nullptr) *bad_rows = {stream.bad_rows(), stream.first_bad()};
  if (rows == 0) return NoRows(name);
  return rows;
}

absl::StatusOr<Quality> EvaluateQuality(const LoadedModel& model, const std::string& name, RowStream::Read read,
                                        std::optional<int64_t> max_bad_rows) {
  RowStream stream(model.model, RowStream::Labels::kRequired, name, std::move(read),
                   max_bad_rows.value_or(model.model.max_bad_rows));
  Scorer scorer({.task = model.model.schema.task,
                 .outputs = model.model.graph.Outputs(),
                 .deviation = model.model.transform.label.deviation,
                 .mean = model.model.transform.label.mean,
                 .log = model.model.transform.label.log});
  Quality quality;
  std::vector<int64_t> confusion(4);  // of rows, whatever their weights are
  MEDLEY_RETURN_IF_ERROR(ForEachBatch(model, stream, [&](const Batch& batch, const std::vector<float>& logits) {
    if (batch.samples > 0) scorer.Add(logits, batch.labels, batch.weights);
    quality.weighted = quality.weighted || !batch.weights.empty();
    if (model.model.schema.task == model::Task::kBinary) {
      for (size_t i = 0; i < batch.labels.size(); ++i) {
        ++confusion[(batch.labels[i] > 0.5F ? 2 : 0) + (logits[i] >= 0 ? 1 : 0)];
      }
      quality.positives += std::ranges::count_if(batch.labels, [](float label) { return label > 0.5F; });
    }
    return absl::OkStatus();
  }));
  quality.bad_rows = {stream.bad_rows(), stream.first_bad()};
  quality.rows = scorer.scores().samples;
  if (quality.rows == 0) return NoRows(name);
  if (!(scorer.scores().weight > 0)) return base::InvalidArgument("{}: the weight of every row is 0", name);
  quality.metrics = MetricsOf(scorer.scores());
  quality.metrics.erase("test_samples");
  quality.confusion = scorer.scores().confusion;
  if (model.model.schema.task == model::Task::kBinary) {
    quality.confusion = std::move(confusion);
    quality.poorly_calibrated = quality.metrics.at("calibrationError") > kPoorCalibration;
  }
  return quality;
}

}  // namespace medley::worker
