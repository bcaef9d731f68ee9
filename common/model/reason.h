// Why a question has no plan. Immutable value.
#pragma once

#include <string>

namespace medley::model {

// One constraint that makes a request infeasible. The reasons of a result are a smallest set of constraints that cannot
// hold together. For limit, memory, maxCostPerHour, budget and maxUnits, `available` is the given bound and `needed` is
// the smallest bound that would make the request feasible. For minThroughput, deadline and minUnits, `needed` is the
// given bound and `available` is the best value that the other constraints allow.
struct Reason {
  std::string constraint;  // as in the proto
  std::string resource_type;
  double needed = 0;
  double available = 0;
  std::string message;  // a sentence that says what the user can change
};

}  // namespace medley::model
