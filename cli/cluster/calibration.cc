#include "cli/cluster/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cli/format.h"
#include "operator/api/conditions.h"
#include "operator/records/plan_request.h"

namespace medley::cli {
namespace {

constexpr double kMostRatio = 10;  // as the scheduling service's corrections

const model::LayerProfile* FindProfile(const model::Model& model, int layer, std::string_view pool) {
  if (layer < 0 || static_cast<size_t>(layer) >= model.layers.size()) return nullptr;
  for (const model::LayerProfile& profile : model.layers[static_cast<size_t>(layer)].profiles) {
    if (profile.resource_type == pool) return &profile;
  }
  return nullptr;
}

}  // namespace

void CalibrateByMeasurement(JobPlanRequest& job_request) {
  const ops::JobStatus& status = job_request.status;
  const bool trains = status.conditions.IsTrue(ops::kRunningCondition) &&
                      !status.conditions.IsTrue(ops::kRescalingCondition) && !status.finished();
  if (!job_request.record || !trains || !status.observed) return;
  const ops::PlanRecord& record = *job_request.record;
  if (!status.plan || status.plan->generation != record.plan.generation) return;
  const double measured = status.observed->throughput;
  const double predicted =
      record.uncorrected_throughput > 0 ? record.uncorrected_throughput : record.plan.estimate.throughput;
  if (!(measured > 0) || !(predicted > 0) || !std::isfinite(measured) || !std::isfinite(predicted)) return;
  const double ratio = measured / predicted;
  const std::string compared = fmt::format("the running plan reaches {} samples/s and its profiles predict {}",
                                           Thousands(measured), Thousands(predicted));
  if (ratio > kMostRatio || ratio < 1 / kMostRatio) {
    job_request.notes.push_back(compared + ": they differ too much, so the profiles are used as they were measured");
    return;
  }
  ops::Calibrate(job_request.request.model, ratio);
  job_request.calibration = ratio;
  job_request.notes.push_back(
      fmt::format("{}, so predictions of the new plan are multiplied by {:.2f}", compared, ratio));
}

double PredictionSpread(const model::Model& model, const model::ExecutionPlan& plan) {
  double slowest = 0;
  double spread = 0;
  for (const model::Stage& stage : plan.stages) {
    for (const model::Group& group : stage.groups) {
      double seconds = 0;
      double variance = 0;
      for (const model::OperationRange& range : stage.operations) {
        for (int layer = range.first; layer < range.end; ++layer) {
          const model::LayerProfile* profile = FindProfile(model, layer, group.pool);
          if (profile == nullptr) continue;
          seconds += profile->compute_seconds;
          variance += std::pow(profile->spread * profile->compute_seconds, 2);
        }
      }
      if (seconds / group.units <= slowest) continue;
      slowest = seconds / group.units;
      spread = std::sqrt(variance) / seconds;
    }
  }
  return spread;
}

}  // namespace medley::cli
