// What the calibrator keeps of a model: measured stages beside their predictions, and their bytes for a file. Pure.
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

// A resource type with one state of its profile: measured anew, it is another series.
struct SeriesKey {
  std::string type;
  uint64_t profile = 0;  // hash of its numbers
  bool operator==(const SeriesKey&) const = default;
};

struct StageRecord {
  uint32_t series = 0;  // index in ModelRecords::series
  CostPoint compute;
  CostPoint comm;  // measured 0: not measured
};

struct StepRecord {
  double seconds = 0;  // measured, of one step
  std::vector<StageRecord> stages;
};

struct ModelRecords {
  std::vector<SeriesKey> series;
  std::deque<StepRecord> steps;  // oldest first
  uint64_t used = 0;             // counts uses, for forgetting the least recently used
};

// What identifies a model, whatever its profiles say.
std::string Fingerprint(const model::Model& model);
// Hash of the numbers that `type` has in the layers of `model`.
uint64_t ProfileHash(const model::Model& model, const std::string& type);
// Index of the series in `records`; -1: not there.
int FindSeries(const ModelRecords& records, const SeriesKey& key);

// The cost model's parts of a stage for `batch` samples a step, its profiles made with `profile_batch`. Measured fields
// are 0.
StageRecord PredictStage(const model::Model& model, const model::StageMeasurement& stage, double batch,
                         double profile_batch);

// Bytes of one model's records, and back. Errors: DataLoss.
std::string ToBytes(const std::string& fingerprint, const ModelRecords& records);
struct NamedRecords {
  std::string fingerprint;
  ModelRecords records;
};
// Takes one model's records off the front of `bytes`.
absl::StatusOr<NamedRecords> TakeRecords(std::string_view& bytes);

}  // namespace medley::sched
