#include "scheduler-service/profile/calibration.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/prediction.h"
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

// Whose observations of which model; ordered by model, then tenant.
struct EntryKey {
  std::string model;   // fingerprint
  std::string tenant;  // a hash; empty: none
  std::string job;     // likewise
  auto operator<=>(const EntryKey&) const = default;
};

constexpr char kSeparator = '\n';

std::string HashOf(std::string_view name) { return name.empty() ? "" : base::HashHex(name); }

std::string TextOf(const EntryKey& key) { return key.model + kSeparator + key.tenant + kSeparator + key.job; }

// Texts without separators are of versions that knew no tenants.
EntryKey KeyOf(const std::string& text) {
  const size_t first = std::min(text.find(kSeparator), text.size());
  const size_t second = std::min(text.find(kSeparator, first + 1), text.size());
  const auto part = [&](size_t begin, size_t end) { return begin < end ? text.substr(begin, end - begin) : ""; };
  return {text.substr(0, first), part(first + 1, second), part(second + 1, text.size())};
}

using Entries = std::map<EntryKey, Entry>;

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

// The observations of one model, of one tenant.
using Own = std::vector<const Entry*>;

// What the jobs of one tenant say of a type. No observations: nothing.
SeriesFit FitOfTenant(const Own& entries, const SeriesKey& key, int min_observations) {
  std::vector<SeriesFit> measured, shared;
  for (const Entry* entry : entries) {
    const int series = FindSeries(entry->records, key);
    const SeriesFit& fit = series < 0 ? entry->fit.shared : entry->fit.series[static_cast<size_t>(series)];
    (fit.observations >= min_observations ? measured : shared).push_back(fit);
  }
  SeriesFit middle = MiddleOf(measured.empty() ? shared : measured);
  middle.observations = 0;
  for (const auto& fits : {measured, shared}) {
    for (const SeriesFit& fit : fits) middle.observations += fit.observations;
  }
  return middle;
}

model::Prediction CorrectModel(model::Model& model, const Own& entries, int min_observations) {
  const auto most = *std::max_element(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return a->fit.observations < b->fit.observations;
  });
  model::Prediction prediction{0, most->fit.ratio_uncorrected, most->fit.ratio_corrected, most->fit.relative_error, {}};
  for (const Entry* entry : entries) prediction.observations += entry->fit.observations;
  for (const std::string& type : TypesToCorrect(model)) {
    const SeriesFit fit = FitOfTenant(entries, {type, ProfileHash(model, type)}, min_observations);
    prediction.corrections.push_back(CorrectType(model, type, fit));
  }
  return prediction;
}

// By what other tenants have measured, each of which counts once. Nullopt: too few have.
std::optional<model::Prediction> CorrectByOthers(model::Model& model, const std::map<std::string, Own>& tenants,
                                                 const Calibrator::Options& options) {
  model::Prediction prediction;
  bool any = false;
  for (const std::string& type : TypesToCorrect(model)) {
    std::vector<SeriesFit> fits;
    for (const auto& [tenant, entries] : tenants) {
      const SeriesFit fit = FitOfTenant(entries, {type, ProfileHash(model, type)}, options.min_observations);
      if (fit.observations >= options.min_observations) fits.push_back(fit);
    }
    SeriesFit used;
    if (std::ssize(fits) >= options.min_tenants) {
      used = Clamped(MiddleOf(fits), options.max_foreign);
      any = true;
    }
    prediction.corrections.push_back(CorrectType(model, type, used));
    prediction.observations = std::max(prediction.observations, used.observations);
  }
  if (!any) return std::nullopt;
  return prediction;
}

}  // namespace

struct Calibrator::State {
  mutable base::Mutex mutex;
  Entries models ABSL_GUARDED_BY(mutex);
  uint64_t uses ABSL_GUARDED_BY(mutex) = 0;

  // The observations of a model, by tenant.
  std::map<std::string, Own> Of(const std::string& model) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::map<std::string, Own> tenants;
    for (auto it = models.lower_bound({model, "", ""}); it != models.end() && it->first.model == model; ++it) {
      tenants[it->first.tenant].push_back(&it->second);
    }
    return tenants;
  }
  void DropLeastUsed(const std::function<bool(const EntryKey&)>& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    auto least = models.end();
    for (auto it = models.begin(); it != models.end(); ++it) {
      if (!of(it->first)) continue;
      if (least == models.end() || it->second.records.used < least->second.records.used) least = it;
    }
    if (least != models.end()) models.erase(least);
  }
  // Keeps the bounds after an observation of `key`.
  void Drop(const EntryKey& key, const Calibrator::Options& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto same = [&key](const EntryKey& other) { return other.model == key.model && other.tenant == key.tenant; };
    std::map<std::string, int> counts;
    int jobs = 0;
    for (const auto& [other, entry] : models) {
      ++counts[other.tenant];
      jobs += same(other) ? 1 : 0;
    }
    if (jobs > options.max_jobs) return DropLeastUsed(same);
    if (std::ssize(models) <= options.max_models) return;
    const int most = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->second;
    DropLeastUsed([&](const EntryKey& other) { return counts[other.tenant] == most; });
  }
};

Calibrator::Calibrator() : Calibrator(Options()) {}
Calibrator::Calibrator(const Options& options) : options_(options), state_(std::make_unique<State>()) {}
Calibrator::~Calibrator() = default;

absl::StatusOr<model::Prediction> Calibrator::Observe(const model::JobObservation& observation,
                                                      std::string_view tenant) {
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
  const EntryKey key{Fingerprint(model), HashOf(tenant), HashOf(observation.job_uid)};

  base::MutexLock lock(state_->mutex);
  Entry& entry = state_->models[key];
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
  state_->Drop(key, options_);
  model::Model corrected = model;
  return CorrectModel(corrected, state_->Of(key.model)[key.tenant], options_.min_observations);
}

std::optional<model::Prediction> Calibrator::Correct(model::PlanRequest& request, std::string_view tenant) const {
  const std::string fingerprint = Fingerprint(request.model);
  const std::string hash = HashOf(tenant);
  base::MutexLock lock(state_->mutex);
  const std::map<std::string, Own> tenants = state_->Of(fingerprint);
  const auto own = tenants.find(hash);
  if (own == tenants.end()) return CorrectByOthers(request.model, tenants, options_);
  ++state_->uses;
  for (auto it = state_->models.lower_bound({fingerprint, hash, ""}); it != state_->models.end(); ++it) {
    if (it->first.model != fingerprint || it->first.tenant != hash) break;
    it->second.records.used = state_->uses;
  }
  return CorrectModel(request.model, own->second, options_.min_observations);
}

std::optional<model::Prediction> Calibrator::Find(const model::PlanRequest& request, std::string_view tenant) const {
  model::PlanRequest copy;
  copy.model = request.model;
  return Correct(copy, tenant);
}

int Calibrator::models() const {
  base::MutexLock lock(state_->mutex);
  return static_cast<int>(state_->models.size());
}

std::string Calibrator::Save() const {
  std::string bytes(kMagic);
  base::MutexLock lock(state_->mutex);
  for (const auto& [key, entry] : state_->models) bytes += ToBytes(TextOf(key), entry.records);
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
  Entries models;
  uint64_t uses = 0;
  while (!rest.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(NamedRecords named, TakeRecords(rest));
    uses = std::max(uses, named.records.used);
    Entry& entry = models[KeyOf(named.fingerprint)];
    entry.records = std::move(named.records);
    entry.fit = FitModel(entry.records, options_.window, FitOptionsOf(options_));
  }
  base::MutexLock lock(state_->mutex);
  state_->models = std::move(models);
  state_->uses = uses;
  return absl::OkStatus();
}

}  // namespace medley::sched
