#include "worker/predict/predict.h"

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/pipeline/scores.h"
#include "worker/predict/network.h"

namespace medley::worker {
namespace {

constexpr int kRowsAtOnce = 240;

absl::Status ForEachBatch(const LoadedModel& model, RowStream& stream,
                          absl::FunctionRef<absl::Status(const Batch&, const std::vector<float>&)> visit) {
  Network network(model);
  Batch rows;
  std::vector<float> logits;
  while (true) {
    MEDLEY_RETURN_IF_ERROR(stream.Next(kRowsAtOnce, rows));
    if (rows.samples == 0) return absl::OkStatus();
    logits.clear();
    network.Logits(rows, logits);
    MEDLEY_RETURN_IF_ERROR(visit(rows, logits));
  }
}

float Sigmoid(float logit) {
  // The argument of exp is never positive, so the result does not overflow.
  const float e = std::exp(-std::abs(logit));
  return logit >= 0 ? 1 / (1 + e) : e / (1 + e);
}

absl::Status NoRows(const std::string& name) { return base::InvalidArgument("{}: the data have no rows", name); }

}  // namespace

absl::StatusOr<int64_t> Predict(const LoadedModel& model, const std::string& name, RowStream::Read read,
                                absl::FunctionRef<absl::Status(std::string_view)> write) {
  RowStream stream(model.model, RowStream::Labels::kOptional, name, std::move(read));
  int64_t rows = 0;
  std::string text;
  MEDLEY_RETURN_IF_ERROR(ForEachBatch(model, stream, [&](const Batch& batch, const std::vector<float>& logits) {
    text.clear();
    for (const float logit : logits) {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof digits, Sigmoid(logit)).ptr;
      text.append(digits, end);
      text += '\n';
    }
    rows += batch.samples;
    return write(text);
  }));
  if (rows == 0) return NoRows(name);
  return rows;
}

absl::StatusOr<Quality> EvaluateQuality(const LoadedModel& model, const std::string& name, RowStream::Read read) {
  RowStream stream(model.model, RowStream::Labels::kRequired, name, std::move(read));
  ScoreHistogram scores;
  Quality quality;
  int64_t right = 0;
  MEDLEY_RETURN_IF_ERROR(ForEachBatch(model, stream, [&](const Batch& batch, const std::vector<float>& logits) {
    for (size_t i = 0; i < logits.size(); ++i) {
      const bool positive = batch.labels[i] > 0.5F;
      scores.Add(logits[i], batch.labels[i]);
      quality.positives += positive ? 1 : 0;
      right += (logits[i] > 0) == positive ? 1 : 0;
    }
    return absl::OkStatus();
  }));
  if (scores.samples() == 0) return NoRows(name);
  const auto rows = static_cast<double>(scores.samples());
  quality.rows = scores.samples();
  quality.auc = Auc(scores.positives(), scores.negatives());
  quality.log_loss = scores.log_loss_sum() / rows;
  quality.accuracy = static_cast<double>(right) / rows;
  return quality;
}

}  // namespace medley::worker
