// Decides whether to move a running job to another plan. Pure.
//
// Moves when the saving over the remaining samples exceeds the cost of the move, the saving is at least `min_saving`
// of the cost of staying, and the last move to save money was at least a cooldown ago. The cost of the move is the
// pause (measured) and the warm-up, during which two sets of pods run, both at the candidate's price, and the cost of
// training lost samples again. The candidate's throughput is taken as its estimate times the measured over the
// estimated throughput of the present plan, so that an error of the cost model in both does not cause moves. A forced
// move (the present plan cannot reach the goal any more, or cannot run) needs no saving. Where interruptions of spot
// units are expected, they are part of what either plan costs.
//
// A job with Objective::fastest saves seconds instead of USD, and one with least_usd_per_hour saves USD per hour: the
// same rules hold for them.
#pragma once

#include <optional>
#include <string>

#include "common/model/forward.h"

namespace medley::ops {

struct MoveInputs {
  double remaining_samples = 0;
  // The present plan at current prices.
  double current_usd_per_hour = 0;
  double current_throughput = 0;  // measured; 0: not measured yet, the estimate counts
  double current_estimated_throughput = 0;
  // The candidate.
  double candidate_usd_per_hour = 0;
  double candidate_estimated_throughput = 0;
  bool same_plan = false;  // the candidate is the present plan
  // Cost of a move.
  double pause_seconds = 1;     // no training
  double warm_up_seconds = 10;  // new pods cost money and do not train yet
  double lost_samples = 0;      // trained again after the move
  // Interruptions of spot units: each costs so much time of the plan's units. 0: none are expected.
  double current_losses_per_hour = 0;
  double candidate_losses_per_hour = 0;
  double seconds_per_loss = 0;
  // Policy.
  double min_saving = 0.1;  // share of the cost of staying
  double cooldown_seconds = 300;
  double seconds_since_last_move = 1e9;
  bool forced = false;
  bool fastest = false;             // Objective::fastest
  bool least_usd_per_hour = false;  // Objective::least_usd_per_hour
};

struct MoveDecision {
  bool move = false;
  std::string reason;  // CamelCase: SamePlan, Forced, Saves, SavingTooSmall, CostsMoreThanItSaves,
                       // Cooldown, NothingLeft
  // USD; seconds for a job with Objective::fastest; USD per hour for one with least_usd_per_hour, whose moves cost 0.
  double stay = 0;     // from now to the end
  double move_to = 0;  // from now to the end on the candidate, without the move itself
  double move_cost = 0;
  double saving = 0;     // stay - move_to
  std::string sentence;  // for an Event: the numbers behind the decision
};

MoveDecision DecideMove(const MoveInputs& inputs);

// The throughput that current predictions give the present plan, for the comparison with candidates, which current
// predictions rate as well. Where the scheduling service corrects its predictions by measurements, it is `measured`
// divided by the remaining ratio of measured to predicted throughput; else `uncorrected`, from the time of planning:
// the service may have corrected predictions then, and does not now.
double PresentEstimate(double uncorrected, double measured, const std::optional<model::Prediction>& prediction);

// What the profiles promise without corrections for a plan of which corrected ones, as in `prediction`, promise
// `estimated`.
double WithoutCorrections(double estimated, const std::optional<model::Prediction>& prediction);

// True when the scheduling service corrected the profile of at least one pool by measurements.
bool IsCorrected(const std::optional<model::Prediction>& prediction);

}  // namespace medley::ops
