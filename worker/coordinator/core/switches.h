// The records of generation switches: how long training stood still, and how much of it is trained again.
//
// Data in: the generation that is put in force, what agents say of their programs. Data out: what observations and the
// journal say. The record of a program's switch is complete with the program's first step: until then nobody trains.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

struct SwitchesState {
  std::vector<job::v1::SwitchRecord> complete;  // the last 32
  // Only of programs: that of the generation in force, with the pause and the lost steps as far as they are known.
  std::optional<job::v1::SwitchRecord> open;
  base::SteadyTime stood_from{};   // the last step before it
  base::SteadyTime in_force_at{};  // of the generation
  int64_t reached = 0;             // the last step that was made before it
};

namespace switches {

// The next generation is about to be put in force.
void Record(SwitchesState& own, const CoreState& view, Instant now);
// The program has continued after `step`, or after a later one.
void ResumedFrom(SwitchesState& own, int64_t step);
// The first step of the generation in force is committed, or the job ends without one.
void Complete(SwitchesState& own, base::SteadyTime now);
void Restore(SwitchesState& own, const job::v1::CoordinatorState& journal);

}  // namespace switches
}  // namespace medley::worker
