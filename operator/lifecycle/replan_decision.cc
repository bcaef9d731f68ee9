#include "operator/lifecycle/replan_decision.h"

#include <fmt/core.h>

#include <algorithm>

namespace medley::ops {
namespace {

std::string Usd(double value) { return fmt::format("{:.4g} USD", value); }

MoveDecision Conclude(MoveDecision decision, bool move, const char* reason, std::string sentence) {
  decision.move = move;
  decision.reason = reason;
  decision.sentence = std::move(sentence);
  return decision;
}

// Cost in USD of training `samples` at that throughput and price.
double CostOf(double samples, double throughput, double usd_per_hour) {
  return throughput > 0 ? samples / throughput / 3600 * usd_per_hour : 0;
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
  d.stay_usd = CostOf(in.remaining_samples, current, in.current_usd_per_hour);
  d.move_usd = CostOf(in.remaining_samples, candidate, in.candidate_usd_per_hour);
  d.move_cost_usd = (in.pause_seconds + in.warm_up_seconds) / 3600 * in.candidate_usd_per_hour +
                    CostOf(in.lost_samples, candidate, in.candidate_usd_per_hour);
  d.saving_usd = d.stay_usd - d.move_usd;
  const double percent = d.stay_usd > 0 ? 100 * d.saving_usd / d.stay_usd : 0;
  const std::string numbers = fmt::format(
      "staying costs {} for the remaining {:.0f} samples; the other plan costs {}, which saves {} ({:.1f} %); the move "
      "itself costs {}",
      Usd(d.stay_usd), in.remaining_samples, Usd(d.move_usd), Usd(d.saving_usd), percent, Usd(d.move_cost_usd));
  if (in.same_plan) return Conclude(d, false, "SamePlan", "the present plan is still the best one");
  if (in.remaining_samples <= 0) return Conclude(d, false, "NothingLeft", "no samples are left to train");
  if (in.forced) return Conclude(d, true, "Forced", "the present plan cannot reach the goal or cannot run; " + numbers);
  if (d.saving_usd <= d.move_cost_usd) return Conclude(d, false, "CostsMoreThanItSaves", numbers);
  if (d.saving_usd < in.min_saving * d.stay_usd) {
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
