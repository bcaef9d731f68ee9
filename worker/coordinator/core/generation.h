// The records that CoordinatorCore keeps of members, generations and checkpoints. Plain values; internal to core/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// One moment on both clocks.
struct Instant {
  base::SteadyTime steady;
  base::WallTime wall;
};

// Why a generation ends or is abandoned.
struct Cause {
  job::v1::SwitchCause kind = job::v1::SWITCH_CAUSE_UNSPECIFIED;
  std::string text;    // a plan's reason, or a sentence for users
  std::string member;  // the member concerned; may be empty
};

// A connected process.
struct ConnectedMember {
  job::v1::Hello hello;
  base::SteadyTime since;
  bool leaving = false;          // drained, or has sent Leaving: avoided in new generations
  bool released = false;         // a Release was sent
  std::string fault = "";        // the last that it reported, but for broken exchanges
  int64_t fault_generation = 0;  // in which it was
};

// The part that a process plays in a generation.
struct GenerationMember {
  job::v1::Peer peer;
  bool is_peer = true;   // false: a source that only sends its state
  bool awaited = false;  // has not reconnected since the coordinator's restart
  bool warmed = false;
  bool ready = false;
  bool halted = false;
  int64_t applied = 0;  // as it said when it halted
  int64_t undo_to = 0;
  bool holds_nothing = false;                    // as it said when it halted
  std::vector<job::v1::KeptPushes> pushes = {};  // as it said when it halted
  int64_t rows = 0;
  std::string data_digest;
  std::string program;  // hash
};

// A generation in force, or one being prepared.
struct GenerationInfo {
  int64_t generation = 0;
  job::v1::ApplyPlanRequest request;                // the accepted plan
  plan::v1::ExecutionPlan plan;                     // that plan, cut down to the members
  std::vector<job::v1::Peer> peers;                 // at the start: trainers by (stage, index), then servers
  std::map<std::string, GenerationMember> members;  // peers that are not lost, and sources that are not peers
  job::v1::StateOrigin origin = job::v1::STATE_ORIGIN_UNSPECIFIED;
  int64_t step = 0;       // step of its initial state; known at Switch
  int lag = 1;            // the most steps that a member has open, and can be ahead of another (Warmed.lag)
  bool averages = false;  // replicas differ, except after steps that agree
  // Above 0: the state is that of this step, restored to be evaluated at the end. The ledger stays at the last step.
  int64_t restored_step = 0;
  std::optional<job::v1::Rebuild> rebuild = std::nullopt;  // how the shards of lost servers get their rows
  bool switching = false;
  bool recovery = false;
  Cause cause;
  base::SteadyTime deadline;  // for the preparation, later for the switch
};

// A checkpoint whose files are all written, which the shell completes.
struct PendingManifest {
  std::string folder;
  int64_t step = 0;
  base::SteadyTime deadline;
};

// An ExportCommand without a result.
struct PendingExport {
  int64_t step = 0;
  base::SteadyTime deadline;
};

// The last checkpoint that was started. Every attempt writes into a folder of its own, because a member that hung in an
// earlier one may resume at any time.
struct CheckpointAttempt {
  int64_t generation = 0;
  int64_t step = 0;
  int number = 0;  // counts the attempts of this generation at this step
};

// A checkpoint that members are writing.
struct PendingCheckpoint {
  int64_t step = 0;
  std::string folder;
  std::set<std::string> waiting;  // members that have not answered
  std::vector<job::v1::CheckpointFile> files;
  base::SteadyTime deadline;
  bool last = false;  // then the program stands still
};

}  // namespace medley::worker
