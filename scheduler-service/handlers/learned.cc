#include "scheduler-service/handlers/learned.h"

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr char kCalibration[] = "calibration";
constexpr base::seconds kPeriod{5};

}  // namespace

Learned::Learned(const std::filesystem::path& folder, metrics::Registry& metrics)
    : files_(folder, metrics), metrics_(metrics), policies_(folder.empty() ? folder : folder / "policies") {}

absl::Status Learned::Open() {
  MEDLEY_RETURN_IF_ERROR(files_.Open());
  policies_.Scan();
  const auto bytes = files_.Load(kCalibration);
  if (!bytes) return absl::OkStatus();
  if (const absl::Status status = calibrator_.Load(*bytes); !status.ok()) {
    files_.Damaged(kCalibration, status);
  } else {
    log::Info("corrections read", {{"models", std::to_string(calibrator_.models())}});
  }
  return absl::OkStatus();
}

void Learned::Keep(base::Clock& clock, std::stop_token stop) {
  while (clock.SleepFor(kPeriod, stop)) {
    policies_.Scan();
    Save();
  }
}

void Learned::Save() {
  const uint64_t observed = observed_.load();
  if (saved_.exchange(observed) == observed) return;
  files_.Save(kCalibration, calibrator_.Save());
}

absl::StatusOr<model::Prediction> Learned::Observe(const model::JobObservation& observation) {
  auto prediction = calibrator_.Observe(observation);
  if (!prediction.ok()) return prediction;
  ++observed_;
  metrics_
      .GetHistogram("medley_prediction_error", "How far corrected predictions are from what jobs measured, relative",
                    {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1})
      .Observe(prediction->relative_error);
  metrics_.GetGauge("medley_calibrated_models", "Models that observations are kept of").Set(calibrator_.models());
  return prediction;
}

}  // namespace medley::sched
