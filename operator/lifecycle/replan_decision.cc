#include "operator/lifecycle/replan_decision.h"
#include "common/base/figure.h"
#include "common/model/prediction.h"

#include <fmt/core.h>

#include <algorithm>

namespace medley::ops {
namespace {

constexpr double kSecondsPerHour = 3600;

MoveDecision Conclude(MoveDecision decision, bool move, const char* reason, std::string sentence) {
  decision.move = move;
  decision.reason = reason;
  decision.sentence = std::move(sentence);
  return decision;
}

// Cost in USD of training `samples` at that throughput and price.
double CostOf(double samples, double throughput, double usd_per_hour) {
  return throughput > 0 ? samples / throughput / kSecondsPerHour * usd_per_hour : 0;
}

}  // namespace

double PresentEstimate(double uncorrected, double measured, const std::optional<model::Prediction>& prediction) {
  if (!IsCorrected(prediction) || !(prediction->ratio_corrected > 0) || !(measured > 0)) return uncorrected;
  return measured / prediction->ratio_corrected;
}

double WithoutCorrections(double estimated, const std::optional<model::Prediction>& prediction) {
  if (!IsCorrected(prediction) || !(prediction->ratio_corrected > 0) || !(prediction->ratio_uncorrected > 0)) {
    return estimated;
  }
  return estimated * prediction->ratio_corrected / prediction->ratio_uncorrected;
}

bool IsCorrected(const std::optional<model::Prediction>& prediction) {
  if (!prediction) return false;
  for (const model::Correction& correction : prediction->corrections) {
    if (correction.compute != 1 || correction.comm != 1) return true;
  }
  return false;
}

MoveDecision DecideMove(const MoveInputs& in) {
  MoveDecision d;
  const bool measured = in.current_throughput > 0 && in.current_estimated_throughput > 0;
  const double calibration = measured ? in.current_throughput / in.current_estimated_throughput : 1;
  const double current = measured ? in.current_throughput : in.current_estimated_throughput;
  const double candidate = in.candidate_estimated_throughput * calibration;
  // A second costs a second, whatever runs.
  const double current_price = in.fastest ? kSecondsPerHour : in.current_usd_per_hour;
  const double candidate_price = in.fastest ? kSecondsPerHour : in.candidate_usd_per_hour;
  // While new pods start, the job trains on: that costs money, but no time.
  const double move_seconds = in.pause_seconds + (in.fastest ? 0 : in.warm_up_seconds);
  const auto with_losses = [&](double losses_per_hour) {
    return 1 + losses_per_hour * in.seconds_per_loss / kSecondsPerHour;
  };
  d.stay = CostOf(in.remaining_samples, current, current_price) * with_losses(in.current_losses_per_hour);
  d.move_to = CostOf(in.remaining_samples, candidate, candidate_price) * with_losses(in.candidate_losses_per_hour);
  d.move_cost = move_seconds / kSecondsPerHour * candidate_price + CostOf(in.lost_samples, candidate, candidate_price);
  if (in.least_usd_per_hour) {
    d.stay = in.current_usd_per_hour;
    d.move_to = in.candidate_usd_per_hour;
    d.move_cost = 0;
  }
  d.saving = d.stay - d.move_to;
  const double percent = d.stay > 0 ? 100 * d.saving / d.stay : 0;
  const char* const unit = in.fastest ? "s" : in.least_usd_per_hour ? "USD per hour" : "USD";
  const auto amount = [&](double value) { return fmt::format("{} {}", base::Figure(value), unit); };
  const std::string numbers = fmt::format(
      "staying {} {} for the remaining {} samples; the other plan {} {}, which saves {} ({:.1f} %); the move "
      "itself {} {}",
      in.fastest ? "takes" : "costs", amount(d.stay), base::Figure(in.remaining_samples),
      in.fastest ? "takes" : "costs", amount(d.move_to), amount(d.saving), percent, in.fastest ? "takes" : "costs",
      amount(d.move_cost));
  if (in.same_plan) return Conclude(d, false, "SamePlan", "the present plan is still the best one");
  if (in.remaining_samples <= 0) return Conclude(d, false, "NothingLeft", "no samples are left to train");
  if (in.forced) return Conclude(d, true, "Forced", "the present plan cannot reach the goal or cannot run; " + numbers);
  if (d.saving <= d.move_cost) return Conclude(d, false, "CostsMoreThanItSaves", numbers);
  if (d.saving < in.min_saving * d.stay) {
    return Conclude(d, false, "SavingTooSmall",
                    fmt::format("{}; the saving is less than spec.elasticity.replan.minSaving, {:.1f} %", numbers,
                                100 * in.min_saving));
  }
  if (in.seconds_since_last_move < in.cooldown_seconds) {
    return Conclude(
        d, false, "Cooldown",
        fmt::format("{}; the last move was {:.0f} s ago, less than spec.elasticity.replan.cooldown, {:.0f} s", numbers,
                    in.seconds_since_last_move, in.cooldown_seconds));
  }
  return Conclude(d, true, "Saves", numbers);
}

}  // namespace medley::ops
