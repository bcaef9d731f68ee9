// What a plan on devices costs and reaches, and which bounds of the request it breaks. Pure.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <vector>

#include "common/model/forward.h"

namespace medley::model {
enum class Objective;
struct Constraints;
}  // namespace medley::model

namespace medley::sched {

class DeviceProblem;

struct Figures {
  double seconds = 0;         // of a step
  double throughput = 0;      // samples/s
  double usd_per_hour = 0;    // of all devices of the plan; 0: one of them has no price
  double seconds_to_end = 0;  // of the samples that are left; 0: the request does not say how many
  double usd = 0;             // for them; 0: unknown
  int units = 0;              // devices
  int least_units = 0;        // replicas of the stage that has the fewest
  bool operator==(const Figures&) const = default;
};

// `seconds`: of a step of `plan`, whose devices are devices of the problem.
Figures FiguresOf(const DeviceProblem& problem, const model::ExecutionPlan& plan, double seconds);

// The constraints of a request that its plans can break, in the order in which reasons name them.
enum class Bound { kMinThroughput, kDeadline, kMaxCostPerHour, kBudget, kMaxUnits, kMinUnits };
std::vector<Bound> BoundsOf(const model::Constraints& constraints);  // those that are set

double LimitOf(const model::Constraints& constraints, Bound bound);
double ValueOf(const Figures& figures, Bound bound);  // what the bound limits
// A larger value keeps the bound: samples/s, and units of a stage.
bool IsLeast(Bound bound);
// Compares with a relative tolerance of 1e-9.
bool Keeps(const model::Constraints& constraints, Bound bound, const Figures& figures);
bool KeepsAll(const model::Constraints& constraints, const Figures& figures);

// The name of the bound in model::Reason::constraint.
std::string NameOf(Bound bound);

// FailedPrecondition with the first of the bounds that `plan` breaks, if any. Without `seconds` only those that need no
// simulation.
absl::Status CheckBounds(const model::Constraints& constraints, const DeviceProblem& problem,
                         const model::ExecutionPlan& plan, std::optional<double> seconds = std::nullopt);

// What the objective minimises, in its own units.
double ValueOf(const Figures& figures, model::Objective objective);
// True if `one` is better than `other`: the value of the objective, and where it is the same, money and then time.
bool IsBetter(const Figures& one, const Figures& other, model::Objective objective);

}  // namespace medley::sched
