// What a planner answers. Immutable values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "scheduler-service/devices/figures.h"

namespace medley::sched {

struct Candidate {
  // A plan that the planner compared.
  struct Alternative {
    std::string label;
    double seconds = 0;   // of a step
    std::string failure;  // why there is no such plan, instead of seconds
  };
  std::optional<model::ExecutionPlan> plan;  // nullopt: none was found; `notes` may say why
  Figures figures;                           // of the plan, by the planner's judge
  // Proven, of the objective's value (on devices: of the seconds of a step), by the closed form that the planner
  // searched with, or without one of every plan. 0: not proven.
  double lower_bound = 0;
  double model_seconds = 0;  // of a step of `plan`, by the closed form of a planner of devices; 0: it has none
  int64_t judged = 0;        // plans that the judge was asked about
  int64_t repaired = 0;      // plans that were illegal, so the planner changed them
  // False: the budget ended the search. If true and `plan` is nullopt, a planner that proves optimality has proven that
  // there is no plan.
  bool complete = true;
  std::vector<Alternative> alternatives;
  std::string explanation;         // one fact a line
  std::vector<std::string> notes;  // sentences for the answer
  std::string planner;             // that made the plan, if it is not the requested one
  std::string policy;              // a trained one as bytes, if the request asks for it
};

}  // namespace medley::sched
