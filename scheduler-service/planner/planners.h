// Creates the planners of this folder. Each one is described by its description() and in its source file. Internal to
// planner/.
#pragma once

#include "scheduler-service/planner/stage_planner.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {

std::unique_ptr<StagePlanner> MakeExact();
std::unique_ptr<StagePlanner> MakeBruteForce();
std::unique_ptr<StagePlanner> MakeGreedy();
std::unique_ptr<StagePlanner> MakeHeuristic();
std::unique_ptr<StagePlanner> MakeCpuOnly();
std::unique_ptr<StagePlanner> MakeGpuOnly();
std::unique_ptr<StagePlanner> MakeAuto();
std::unique_ptr<StagePlanner> MakeRlLstm();

// The cheapest plan of one stage, on type `t`.
std::optional<Provisioned> SingleType(const Problem& problem, int t);
// The cheapest plan found in the budget whose stages, one or several, are all on type `t`. For models with more than
// kMostPossibleStages possible stages: the cheapest of one stage.
std::optional<Provisioned> CheapestOnType(const Problem& problem, int t, const Budget& budget);
// The cheapest plan found in the budget that has each layer on the type that `schedule` says. A run of layers of one
// type may be several stages. nullopt: there is none, or none was found in time.
std::optional<Provisioned> CheapestCuts(const Problem& problem, const std::vector<int>& schedule, const Budget& budget);
std::vector<StageChoice> WholeModelOn(const Problem& problem, int t);

}  // namespace medley::sched
