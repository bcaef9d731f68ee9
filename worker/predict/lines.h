// Predictions as lines of text. Not thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worker/export/exported_model.h"

namespace medley::worker {

class PredictionLines {
 public:
  // With `all`, several classes get the probabilities of all of them, else the most probable class and its probability.
  // `model` must outlive this object.
  PredictionLines(const ExportedModel& model, bool all);

  // Appends a line for the logits of one sample.
  void Append(std::span<const float> logits, std::string& text) const;

 private:
  void AppendTokens(std::span<const float> logits, std::string& text) const;
  void AppendClass(std::span<const float> logits, std::string& text) const;

  const ExportedModel& model_;
  const bool all_;
  std::vector<std::string> classes_;  // names as fields of a CSV file
};

}  // namespace medley::worker
