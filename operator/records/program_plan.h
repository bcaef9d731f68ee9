// Plans a job of a program: which pool, and how many of its units. Pure, thread-safe.
//
// A program cannot be divided into stages, and Medley does not know its gradients, so the scheduling service's planners
// have nothing to plan. What is left is a choice of pool and size, and all of them are tried
// (docs/adr/0086-a-program-is-measured-by-running-it.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/model/scaling_curve.h"

namespace medley::ops {

// How long steps took, by pool.
using MeasuredSizes = std::map<std::string, std::vector<model::SizeMeasure>>;

// What part of the paid time the losses of one unit cost, by pool (interruptions.h); absent: nothing.
using LostShares = std::map<std::string, double>;

// Puts a scaling curve for each pool into the profile of a program, whose compute_seconds are those of a step on one
// unit: compute_seconds (1 - compute_parallel + compute_parallel / k) + sync_seconds log2 k. A pool that was measured
// on one number of units only scales as the pool that was measured on most does, where there is one. The profiler's own
// curve counts where the job has not measured.
void SetScaling(model::Model& model, const MeasuredSizes& measured);

// The numbers of units, above 1, whose processes a profiler runs on one unit, so that a first plan knows how the
// program scales: the smallest that a plan may have, and the largest that is not much work to measure. `least`, `most`:
// of the job on the pool; `legal_units`: as below. Empty: a plan can only have one unit.
std::vector<int> SizesToMeasure(const std::vector<int>& legal_units, int least, int most);

// That the pool was measured, as a sentence, with what the profile of a program says of it.
std::string MeasuredWords(const model::Profile& profile, const std::string& pool);

// `request`: its model is the one layer of the program's profile, with its scaling curves (SetScaling).
// `legal_units`: the sizes that may be chosen; empty: any. The best by the request's objective within its
// constraints; of equally good ones, that of fewer units, then of the pool first named. Without one, the reasons say
// what the best sizes lack. USD are with what is expected to be lost: each unit's loss stops all units.
model::PlanResult PlanProgram(const model::PlanRequest& request, const std::vector<int>& legal_units,
                              const LostShares& lost = {});

}  // namespace medley::ops
