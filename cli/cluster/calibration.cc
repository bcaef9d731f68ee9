#include "cli/cluster/calibration.h"

#include <fmt/core.h>

#include <cmath>

#include "cli/format.h"
#include "operator/api/conditions.h"
#include "operator/records/plan_request.h"

namespace medley::cli {
namespace {

constexpr double kMostRatio = 10;  // as the scheduling service's corrections

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

}  // namespace medley::cli
