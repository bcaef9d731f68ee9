// Whether to move a running job to another plan. Pure.
//
// Move when  saving over the remaining samples > cost of the move,  the saving is at least
// `min_saving` of what staying would cost, and the last move for money is a cooldown ago. Cost of
// the move = standing still (measured pause) and running two sets of pods (warm-up), both at $/s,
// and training lost samples again. What the candidate will reach is its estimate times what the
// present plan reaches of its own estimate, so that a model that is wrong for both does not make
// jobs wander. A forced move (the present plan cannot reach the goal any more, or cannot run) needs
// no saving.
#pragma once

#include <optional>
#include <string>

#include "common/model/planning.h"

namespace medley::ops {

struct MoveInputs {
  double remaining_samples = 0;
  // The present plan at the prices of now.
  double current_usd_per_hour = 0;
  double current_throughput = 0;  // measured; 0: not yet, its estimate counts
  double current_estimated_throughput = 0;
  // The candidate.
  double candidate_usd_per_hour = 0;
  double candidate_estimated_throughput = 0;
  bool same_plan = false;  // the candidate is the present plan
  // Cost of a move.
  double pause_seconds = 1;     // training stands still
  double warm_up_seconds = 10;  // new pods are paid and do not train yet
  double lost_samples = 0;      // to be trained again
  // Policy.
  double min_saving = 0.1;  // share of the cost of staying
  double cooldown_seconds = 300;
  double seconds_since_last_move = 1e9;
  bool forced = false;
};

struct MoveDecision {
  bool move = false;
  std::string reason;   // CamelCase: SamePlan, Forced, Saves, SavingTooSmall, CostsMoreThanItSaves,
                        // Cooldown, NothingLeft
  double stay_usd = 0;  // from now to the end
  double move_usd = 0;  // from now to the end on the candidate, without the move itself
  double move_cost_usd = 0;
  double saving_usd = 0;  // stay_usd - move_usd
  std::string sentence;   // for an Event: the numbers, either way
};

MoveDecision DecideMove(const MoveInputs& inputs);

// What today's predictions say of the present plan, to compare candidates with: `estimated` when it was made, unless
// the service has corrected its predictions by measurements since. Then `measured` over the ratio that is left.
double PresentEstimate(double estimated, double measured, const std::optional<model::Prediction>& prediction);

// True when measurements changed the profile of some type before it was planned with.
bool IsCorrected(const std::optional<model::Prediction>& prediction);

}  // namespace medley::ops
