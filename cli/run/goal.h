// The goal of a job whose scenario gives it as a percentage of what the offered machines reach (`goalPercent`), so that
// an example suits machines of any speed. The job is first applied with a goal that nothing reaches: then the operator
// measures the pools, and the condition Planned says what they reach at most. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "kube/object.h"

namespace medley::cli {

// Replaces the job's minThroughput by one that no plan reaches: the largest that the API accepts.
void AskForMost(kube::Object& job);

// The samples/s that the planner's answer to AskForMost names, the message of a condition or an Event with the reason
// Infeasible; nullopt: it is no such answer.
std::optional<double> MostReached(std::string_view reason, std::string_view message);

// The whole samples/s that are `percent` of `most`, at least 1.
double GoalOf(double most, double percent);

}  // namespace medley::cli
