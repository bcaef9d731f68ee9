#include "scheduler-service/profile/calibration.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "scheduler-service/profile/calibration_fit.h"
#include "scheduler-service/profile/calibration_records.h"

namespace medley::sched {
namespace {

constexpr std::string_view kMagic = "MEDLEY-CALIBRATION-1\n";
constexpr char kCalibrated[] = "calibrated";
constexpr size_t kMaxStagesOfAStep = 64;
constexpr size_t kMaxStagesOfAModel = 1024;  // if a model has more, its oldest steps are dropped

struct Entry {
  ModelRecords records;
  ModelFit fit;
};

FitOptions FitOptionsOf(const Calibrator::Options& options) {
  FitOptions fit;
  fit.min_points = options.min_observations;
  fit.max_factor = options.max_factor;
  return fit;
}

size_t StageCount(const ModelRecords& records) {
  size_t count = 0;
  for (const StepRecord& step : records.steps) count += step.stages.size();
  return count;
}

// Removes series to which no step refers.
void Compact(ModelRecords& records) {
  std::set<uint32_t> referred;
  for (const StepRecord& step : records.steps) {
    for (const StageRecord& stage : step.stages) referred.insert(stage.series);
  }
  std::map<uint32_t, uint32_t> moved;
  std::vector<SeriesKey> kept;
  for (const uint32_t old : referred) {
    moved[old] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(records.series[old]));
  }
  records.series = std::move(kept);
  for (StepRecord& step : records.steps) {
    for (StageRecord& stage : step.stages) stage.series = moved.at(stage.series);
  }
}

bool IsCalibrated(const model::Model& model, const model::StageMeasurement& stage) {
  for (int l = stage.first_layer; l <= stage.last_layer; ++l) {
    for (const model::LayerProfile& p : model.layers[static_cast<size_t>(l)].profiles) {
      if (p.resource_type == stage.resource_type && p.origin == kCalibrated) return true;
    }
  }
  return false;
}

absl::Status Check(const model::JobObservation& observation) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(observation));
  if (observation.stages.size() > kMaxStagesOfAStep) {
    return base::InvalidArgument("stages: has {} entries, at most {} are allowed", observation.stages.size(),
                                 kMaxStagesOfAStep);
  }
  for (size_t i = 0; i < observation.stages.size(); ++i) {
    if (!IsCalibrated(observation.request.model, observation.stages[i])) continue;
    return base::InvalidArgument(
        "stages[{}]: the profile of type '{}' is calibrated already; send the profile without corrections", i,
        observation.stages[i].resource_type);
  }
  return absl::OkStatus();
}

// Seconds, and the share of them that divides by units.
struct Split {
  double seconds = 0;
  double parallel = 0;
};

Split Corrected(double seconds, double parallel, const CostFit& fit) {
  const double stays = seconds * (1 - parallel) * fit.stays;
  const double divides = seconds * parallel * fit.divides;
  const double whole = stays + divides;
  return {whole, whole > 0 ? std::clamp(divides / whole, 0.0, 1.0) : parallel};
}

void Apply(model::LayerProfile& p, const SeriesFit& fit) {
  const Split compute = Corrected(p.compute_seconds, p.compute_parallel, fit.compute);
  p.compute_seconds = compute.seconds;
  p.compute_parallel = compute.parallel;
  // Both times have the same fraction comm_parallel, so they also share the corrected one.
  const Split sync = Corrected(p.sync_seconds, p.comm_parallel, fit.comm);
  const Split transfer = Corrected(p.transfer_seconds, p.comm_parallel, fit.comm);
  p.sync_seconds = sync.seconds;
  p.transfer_seconds = transfer.seconds;
  p.comm_parallel = sync.seconds > 0 ? sync.parallel : transfer.parallel;
  p.origin = kCalibrated;
}

struct Seconds {
  double compute = 0;
  double comm = 0;
};

double Ratio(double after, double before) { return before > 0 ? after / before : 1; }

// Corrects the profiles of one type. The result has the factors for one unit and the profile's batch size.
model::Correction CorrectType(model::Model& model, const std::string& type, const SeriesFit& fit) {
  Seconds before;
  Seconds after;
  for (model::Layer& layer : model.layers) {
    for (model::LayerProfile& p : layer.profiles) {
      if (p.resource_type != type) continue;
      before.compute += p.compute_seconds;
      before.comm += p.sync_seconds + p.transfer_seconds;
      if (fit.compute != CostFit() || fit.comm != CostFit()) Apply(p, fit);
      after.compute += p.compute_seconds;
      after.comm += p.sync_seconds + p.transfer_seconds;
    }
  }
  return {type, Ratio(after.compute, before.compute), Ratio(after.comm, before.comm), fit.observations};
}

// The types in the model's profiles, ordered by name, without those that are calibrated already.
std::set<std::string> TypesToCorrect(const model::Model& model) {
  std::set<std::string> types;
  std::set<std::string> calibrated;
  for (const model::Layer& layer : model.layers) {
    for (const model::LayerProfile& p : layer.profiles) {
      (p.origin == kCalibrated ? calibrated : types).insert(p.resource_type);
    }
  }
  for (const std::string& type : calibrated) types.erase(type);
  return types;
}

model::Prediction CorrectModel(model::Model& model, const Entry& entry) {
  const ModelFit& fit = entry.fit;
  model::Prediction prediction{fit.observations, fit.ratio_uncorrected, fit.ratio_corrected, fit.relative_error, {}};
  for (const std::string& type : TypesToCorrect(model)) {
    const int series = FindSeries(entry.records, {type, ProfileHash(model, type)});
    const SeriesFit& factors = series < 0 ? fit.shared : fit.series[static_cast<size_t>(series)];
    prediction.corrections.push_back(CorrectType(model, type, factors));
  }
  return prediction;
}

}  // namespace

struct Calibrator::State {
  mutable base::Mutex mutex;
  std::map<std::string, Entry> models ABSL_GUARDED_BY(mutex);  // by fingerprint
  uint64_t uses ABSL_GUARDED_BY(mutex) = 0;
};

Calibrator::Calibrator() : Calibrator(Options()) {}
Calibrator::Calibrator(const Options& options) : options_(options), state_(std::make_unique<State>()) {}
Calibrator::~Calibrator() = default;

absl::StatusOr<model::Prediction> Calibrator::Observe(const model::JobObservation& observation) {
  MEDLEY_RETURN_IF_ERROR(Check(observation));
  const model::Model& model = observation.request.model;
  const double profile_batch = observation.request.training.profile_batch_size;
  StepRecord step{observation.batch_size / observation.throughput, {}};
  std::vector<SeriesKey> keys;
  for (const model::StageMeasurement& stage : observation.stages) {
    StageRecord record = PredictStage(model, stage, observation.batch_size, profile_batch);
    record.compute.measured = stage.compute_seconds;
    record.comm.measured = stage.comm_seconds;
    step.stages.push_back(record);
    keys.push_back({stage.resource_type, ProfileHash(model, stage.resource_type)});
  }
  const std::string fingerprint = Fingerprint(model);

  base::MutexLock lock(state_->mutex);
  Entry& entry = state_->models[fingerprint];
  ModelRecords& records = entry.records;
  records.used = ++state_->uses;
  for (size_t i = 0; i < keys.size(); ++i) {
    int series = FindSeries(records, keys[i]);
    if (series < 0) {
      series = static_cast<int>(records.series.size());
      records.series.push_back(keys[i]);
    }
    step.stages[i].series = static_cast<uint32_t>(series);
  }
  records.steps.push_back(std::move(step));
  const auto too_many = [&] {
    return StageCount(records) > kMaxStagesOfAModel || std::ssize(records.series) > options_.max_types;
  };
  while (records.steps.size() > 1 && too_many()) {
    records.steps.pop_front();
    Compact(records);
  }
  entry.fit = FitModel(records, options_.window, FitOptionsOf(options_));
  model::Model corrected = model;
  const model::Prediction prediction = CorrectModel(corrected, entry);
  if (std::ssize(state_->models) > options_.max_models) {
    const auto least = std::min_element(state_->models.begin(), state_->models.end(), [](const auto& a, const auto& b) {
      return a.second.records.used < b.second.records.used;
    });
    state_->models.erase(least);
  }
  return prediction;
}

std::optional<model::Prediction> Calibrator::Correct(model::PlanRequest& request) const {
  const std::string fingerprint = Fingerprint(request.model);
  base::MutexLock lock(state_->mutex);
  const auto found = state_->models.find(fingerprint);
  if (found == state_->models.end()) return std::nullopt;
  found->second.records.used = ++state_->uses;
  return CorrectModel(request.model, found->second);
}

std::optional<model::Prediction> Calibrator::Find(const model::PlanRequest& request) const {
  model::PlanRequest copy;
  copy.model = request.model;
  return Correct(copy);
}

int Calibrator::models() const {
  base::MutexLock lock(state_->mutex);
  return static_cast<int>(state_->models.size());
}

std::string Calibrator::Save() const {
  std::string bytes(kMagic);
  base::MutexLock lock(state_->mutex);
  for (const auto& [fingerprint, entry] : state_->models) bytes += ToBytes(fingerprint, entry.records);
  const uint64_t sum = base::Hash64(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return bytes;
}

absl::Status Calibrator::Load(std::string_view bytes) {
  uint64_t sum = 0;
  if (bytes.size() < kMagic.size() + sizeof(sum) || bytes.substr(0, kMagic.size()) != kMagic) {
    return base::DataLoss("calibration state: is not a calibration file of this version");
  }
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(sum));
  std::memcpy(&sum, bytes.data() + body.size(), sizeof(sum));
  if (sum != base::Hash64(body)) return base::DataLoss("calibration state: is damaged: the checksum does not match");
  std::string_view rest = body.substr(kMagic.size());
  std::map<std::string, Entry> models;
  uint64_t uses = 0;
  while (!rest.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(NamedRecords named, TakeRecords(rest));
    uses = std::max(uses, named.records.used);
    Entry& entry = models[named.fingerprint];
    entry.records = std::move(named.records);
    entry.fit = FitModel(entry.records, options_.window, FitOptionsOf(options_));
  }
  base::MutexLock lock(state_->mutex);
  state_->models = std::move(models);
  state_->uses = uses;
  return absl::OkStatus();
}

}  // namespace medley::sched
