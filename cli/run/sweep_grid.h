// The trials of `medley sweep`: every combination of the values that --set gives to fields of the job. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "kube/object.h"

namespace medley::cli {

inline constexpr size_t kMostTrials = 256;

// A field and the values that it takes.
struct SweepAxis {
  std::string field;  // below spec: "training.optimizer.learningRate"
  std::vector<kube::Json> values;
};

// Reads "training.optimizer.learningRate=0.1,0.03" or "spec.model.parameters.hidden=[64],[64,32]": values are YAML, and
// a comma within brackets, braces or quotes belongs to the value. Errors: InvalidArgument with an example.
absl::StatusOr<SweepAxis> ParseAxis(const std::string& text);

struct Trial {
  std::string name;                                          // of its TrainingJob: "people-3"
  std::vector<std::pair<std::string, kube::Json>> settings;  // field, value
  kube::Object job;
};

// The job with the settings of each combination; the last axis changes first. Errors: InvalidArgument: no axis, a field
// twice, a value twice, more than kMostTrials combinations, a field below one that is no object.
absl::StatusOr<std::vector<Trial>> MakeTrials(const kube::Object& job, const std::vector<SweepAxis>& axes);

// "learningRate=0.1 batchSize=64": the last words of the fields, or the whole fields where those are ambiguous.
std::vector<std::string> ShortNames(const std::vector<SweepAxis>& axes);

}  // namespace medley::cli
