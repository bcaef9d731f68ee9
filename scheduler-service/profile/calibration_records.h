// The calibrator's records of a model: measured and predicted times of stages, and their file format. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/observation.h"
#include "scheduler-service/profile/robust_fit.h"

namespace medley::sched {

// Identifies a series of observations: a resource type with one version of its profile. A new profile starts a new
// series.
struct SeriesKey {
  std::string type;
  uint64_t profile = 0;  // ProfileHash
  bool operator==(const SeriesKey&) const = default;
};

struct StageRecord {
  uint32_t series = 0;  // index in ModelRecords::series
  CostPoint compute;
  CostPoint comm;  // comm.measured is 0 if it was not measured
};

struct StepRecord {
  double seconds = 0;  // measured time of one step
  std::vector<StageRecord> stages;
};

struct ModelRecords {
  std::vector<SeriesKey> series;
  std::deque<StepRecord> steps;  // oldest first
  uint64_t used = 0;             // number of the last use, to drop the least recently used model
};

// Identifies a model by its layers, independent of profiles.
std::string Fingerprint(const model::Model& model);
// Hash of the profiles of all layers for `type`.
uint64_t ProfileHash(const model::Model& model, const std::string& type);
// The index of the series in `records`; -1 if it does not exist.
int FindSeries(const ModelRecords& records, const SeriesKey& key);

// Predicts a stage with the cost model for `batch` samples per step; `profile_batch` is the batch size of the profiles.
// The measured fields are 0.
StageRecord PredictStage(const model::Model& model, const model::StageMeasurement& stage, double batch,
                         double profile_batch);

// Converts the records of one model to bytes.
std::string ToBytes(const std::string& fingerprint, const ModelRecords& records);
struct NamedRecords {
  std::string fingerprint;
  ModelRecords records;
};
// Parses the records of one model and removes them from the front of `bytes`. Errors: DataLoss.
absl::StatusOr<NamedRecords> TakeRecords(std::string_view& bytes);

}  // namespace medley::sched
