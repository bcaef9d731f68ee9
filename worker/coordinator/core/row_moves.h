// The move of embedding tables between the only trainer of a stage and shards of rows, which have another form: through
// a checkpoint. The job saves its state, stands still, and the members of the newest plan read it. Pure functions of
// the whole state.
#pragma once

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/restoring.h"

namespace medley::worker {

struct CoreState;

namespace row_moves {

// Whether the newest plan has the tables in the other form than the plan in force.
bool IsWanted(const CoreState& view);
// Whether it could start now, so that no further step is leased. Not while checkpoints fail: the job trains on.
bool HoldsLeases(const CoreState& view);
// Whether the state of the last step has yet to be saved.
bool NeedsCheckpoint(const CoreState& view);
// The newest plan from the checkpoint of the last step; nothing while a step is open or not saved.
Request Next(const CoreState& view);
// That checkpoint.
CheckpointPosition PositionOf(const CoreState& view);

}  // namespace row_moves
}  // namespace medley::worker
