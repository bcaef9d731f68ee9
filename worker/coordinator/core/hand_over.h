// Handing the job over to another coordinator, and taking it over (docs/adr/0015-the-coordinator-moves.md).
//
// Data in: the operator's requests, members that follow. Data out: redirections. It decides whether the generation in
// force trains on under another coordinator.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/effects.h"

namespace medley::worker {

struct CoreState;

struct HandOverState {
  std::optional<job::v1::HandOverRequest> successor;
  bool handed_over = false;
  // The job was handed over to this coordinator between two steps: it trains on as soon as all members have come. Only
  // in Mode::kHalting.
  std::optional<job::v1::HandedOver> adopting;
  base::SteadyTime adopt_deadline{};
};

namespace hand_over {

bool IsPossible(const CoreState& view);  // now, to the successor
// What the journal says for the successor.
job::v1::HandedOver Boundary(const CoreState& view, Instant now);
// Sends the members to the successor.
void Redirect(const CoreState& view, Effects& out);
// Members of the generation in force have come to this coordinator.
struct Arrival {
  bool all = false;            // every member holds the state of the last committed step: the generation trains on
  std::optional<Cause> wrong;  // one does not
};
Arrival OnReturn(const CoreState& view);
base::WallTime LastCommit(const job::v1::HandedOver& adopting);

// Returns whether this is news. Errors: those of CoordinatorCore::HandOver.
absl::StatusOr<bool> Accept(HandOverState& own, const CoreState& view, const job::v1::HandOverRequest& to,
                            Effects& out);
bool Cancel(HandOverState& own, Effects& out);  // returns whether there was a successor
void DropSuccessor(HandOverState& own);         // the job is suspended
void Complete(HandOverState& own);
void BeginAdopting(HandOverState& own, const job::v1::HandedOver& from, base::SteadyTime deadline);
void EndAdopting(HandOverState& own);

}  // namespace hand_over
}  // namespace medley::worker
