// Which generation is prepared next, and from whose state. Pure functions of the whole state, which they do not change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

namespace choices {

// While a generation trains: whether it may be replaced now.
bool MayChange(const CoreState& view, base::SteadyTime now);
// A newer plan, when all its members that stay are connected.
Request NewPlan(const CoreState& view);
// A member of the generation in force that is leaving; empty: none.
std::string Leaver(const CoreState& view);
// The plan in force without it.
Request Without(const CoreState& view, const std::string& leaver, RosterFit fit);
// The plan in force with a member that came back. `fit`: its members.
Request TakeBack(const CoreState& view, RosterFit fit, base::SteadyTime now);

// After a loss: whether the survivors' plan misses members, and the newest one, which could start, has its tables in
// another form.
bool NeedsCheckpoint(const CoreState& view, base::SteadyTime now);
// After a loss: from the survivors' state, with the first choice of plan and members that covers every stage.
Request FromSurvivors(const CoreState& view, base::SteadyTime now);

// While no member holds the state. The members with which the newest plan starts now; nullopt: others are awaited.
std::optional<RosterFit> ToStart(const CoreState& view, base::SteadyTime now);
// From the checkpoint that was found, or from the seed.
Request FromCheckpoint(const CoreState& view, RosterFit fit);
// No generation could start for too long.
Request CheckDeadline(const CoreState& view, base::SteadyTime now);
// Pods of the newest plan, and of the plan in force, that are not connected.
std::vector<std::string> MissingMembers(const CoreState& view);

}  // namespace choices
}  // namespace medley::worker
