// Lost servers whose rows can be rebuilt from the last checkpoint and from what the trainers have kept since then, so
// that the survivors keep their state (docs/adr/0083-a-lost-server-is-given-its-pushes-again.md).
//
// Data in: which pushes the survivors say they keep when they halt. It decides whether they suffice. Nothing is assumed
// of members that are lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

struct RebuildingState {
  // The checkpoint from which rows could not be rebuilt; it is not tried again for that. Empty folder: the seed.
  bool failed = false;
  std::string failed_folder;
  std::string why;
};

namespace rebuilding {

// Whether the members that are left of a generation lack only rows of servers.
bool LacksOnlyRows(const GenerationInfo& active);

// How the shards of the lost servers get the rows of `to_step`, or why they cannot, as a part of a sentence. `to_step`:
// where the survivors meet.
std::variant<job::v1::Rebuild, std::string> Plan(const CoreState& view, int64_t to_step);

// The cause of a recovery, with what becomes of the rows.
Cause Explained(Cause cause, const job::v1::Rebuild& rebuild, int servers);
Cause Explained(Cause cause, const std::string& why_not);

// Whether the fault is of a member that rebuilds, or helps to: the survivors' state is then of no use.
bool IsOfRebuild(const CoreState& view, const job::v1::Fault& fault);
void OnFailed(RebuildingState& own, const CoreState& view, const std::string& member, const job::v1::Fault& fault);

// Whether the generation that comes into force now keeps fewer pushes than the one before, or none that help: a trainer
// has left, or the number of servers is another one. A checkpoint soon closes the gap.
bool LosesPushes(const CoreState& view);

}  // namespace rebuilding
}  // namespace medley::worker
