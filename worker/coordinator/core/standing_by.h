// Slow trainers stand by until they are as fast as usual again (docs/adr/0026-slow-members-stand-by.md).
//
// Data in: seconds of steps and of probes. It decides who is left out of the next generation, and who may return.
#pragma once

#include <string>
#include <vector>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/options.h"
#include "worker/coordinator/core/slow_members.h"
#include "worker/coordinator/core/standbys.h"

namespace medley::worker {

struct CoreState;

struct StandingByState {
  explicit StandingByState(const CoreOptions& options) : slow(options.slow_for), standbys(options.standby) {}

  SlowMembers slow;   // how fast the trainers of the generation in force are
  Standbys standbys;  // slow trainers: those that stand by, and those in force that the next generation leaves out
};

namespace standing_by {

bool StandsBy(const CoreState& view, const std::string& member);
// Whether a release of `member` goes to the process that stands by.
bool IsToRelease(const CoreState& view, const std::string& member);
// Why a member takes part that the generation in force does not have.
Cause WhyReturned(const StandingByState& state, const std::string& newcomer);
void FillLeftOut(const CoreState& view, job::v1::Observation& out);

void Restore(StandingByState& own, const job::v1::CoordinatorState& journal, base::SteadyTime now);
void OnSession(StandingByState& own, const job::v1::Hello& hello, base::SteadyTime now);
void Remove(StandingByState& own, const std::string& member, base::SteadyTime now);  // it is lost, or leaves
// The generation in force begins to train.
void Begin(StandingByState& own, const CoreState& view);
// A generation is in force: members with a part in it do not stand by. Returns those without a slot in any plan, which
// leave.
std::vector<std::string> Update(StandingByState& own, const CoreState& view, base::SteadyTime now);
void AddStepTime(StandingByState& own, const CoreState& view, const std::string& member, double seconds,
                 base::SteadyTime now);
// Marks the trainers that are to be left out next. LeaveOut plans them out, or a recovery before.
void MarkSlow(StandingByState& own, const CoreState& view, Instant now);
// Plans out the marked trainers of the generation in force. `fit`: the members of the next one.
Request LeaveOut(StandingByState& own, const CoreState& view, const RosterFit& fit, base::SteadyTime now);
void OnProbed(StandingByState& own, const CoreState& view, const std::string& member, const job::v1::Probed& probed,
              base::SteadyTime now, Effects& out);
void SendProbes(StandingByState& own, const CoreState& view, base::SteadyTime now, Effects& out);

}  // namespace standing_by
}  // namespace medley::worker
