#include "worker/predict/lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "worker/scores/losses.h"

namespace medley::worker {
namespace {

void AppendNumber(float number, std::string& text) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// The number that an output means, with the digits of float32 where these are enough to tell labels apart.
void AppendLabel(const LabelTransform& label, double output, std::string& text) {
  const double number = label.Number(output);
  const bool coarse = std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max());
  if (coarse && (label.log || !NeedsDouble(label.mean, label.deviation)))
    return AppendNumber(static_cast<float>(number), text);
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

float SigmoidOf(float logit) {
  // The argument of exp is never positive, so the result does not overflow.
  const float e = std::exp(-std::abs(logit));
  return logit >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// A field of a CSV file, in quotes when the file could be read otherwise.
std::string FieldOf(const std::string& text) {
  if (text.find_first_of("\",\t\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    field += c;
    if (c == '"') field += c;
  }
  return field + '"';
}

}  // namespace

PredictionLines::PredictionLines(const ExportedModel& model, bool all) : model_(model), all_(all) {
  for (const std::string& name : model.transform.label.classes) classes_.push_back(FieldOf(name));
}

void PredictionLines::Append(std::span<const float> logits, std::string& text) const {
  switch (model_.schema.task) {
    case model::Task::kRegression:
      for (size_t i = 0; i < logits.size(); ++i) {
        if (i > 0) text += ',';
        AppendLabel(model_.transform.label, static_cast<double>(logits[i]), text);
      }
      break;
    case model::Task::kMultiClass:
      AppendTokens(logits, text);
      break;
    case model::Task::kOwnLoss:
      AppendNumber(logits[0], text);
      break;
    case model::Task::kBinary:
    case model::Task::kMultiLabel:
      for (size_t i = 0; i < logits.size(); ++i) {
        if (i > 0) text += ',';
        AppendNumber(SigmoidOf(logits[i]), text);
      }
      break;
  }
  text += '\n';
}

// For each token what a sample with one label has, separated by commas.
void PredictionLines::AppendTokens(std::span<const float> logits, std::string& text) const {
  const size_t classes = classes_.size();
  for (size_t first = 0; first + classes <= logits.size(); first += classes) {
    if (first > 0) text += ',';
    AppendClass(logits.subspan(first, classes), text);
  }
}

void PredictionLines::AppendClass(std::span<const float> logits, std::string& text) const {
  const double sum = LogSumExp(logits);
  const auto append = [&](size_t i) {
    AppendNumber(static_cast<float>(std::exp(static_cast<double>(logits[i]) - sum)), text);
  };
  if (!all_) {
    const auto best = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
    text += classes_[best];
    text += ',';
    append(best);
    return;
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    if (i > 0) text += ',';
    append(i);
  }
}

}  // namespace medley::worker
