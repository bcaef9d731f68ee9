// The commands of the state machine. The shell carries them out in order. Plain values.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/ledger.h"

namespace medley::worker {

// Send a message to the process `instance` of a member. Dropped silently when that process is no longer connected.
struct SendCommand {
  std::string member;
  std::string instance;
  job::v1::SessionResponse message;
};

// Write the state to the journal. It must be on disk before any later command is carried out, but for a periodic
// record, on which nothing depends.
struct JournalCommand {
  job::v1::CoordinatorState state;
  bool periodic = false;
};

// Append a committed step to steps.jsonl. A NaN loss is written as null.
struct StepCommand {
  StepRange range;
  int64_t generation = 0;
  double loss = 0;
  bool agreed = false;            // replicas that differ averaged their parameters after it
  base::WallTime at{};            // when it was committed; the epoch: unknown
  double data_seconds = 0;        // that all trainers waited for samples, since the command before that has some
  double checkpoint_seconds = 0;  // likewise, that they stood still for a checkpoint
};

// Append to steps.jsonl that every member had applied `step` before the next one began.
struct DrainCommand {
  int64_t step = 0;
  int64_t generation = 0;
};

// Append the result of an evaluation to metrics.jsonl.
struct EvaluationCommand {
  job::v1::EvaluationRecord record;
  int64_t generation = 0;
};

// Append a rollback to steps.jsonl and metrics.jsonl: the state contains the steps up to `to_step` again.
struct RollbackCommand {
  int64_t to_step = 0;
  int64_t generation = 0;
};

// Find the newest complete checkpoint, then call OnCheckpointFound.
struct FindCheckpointCommand {
  // Reject a checkpoint that cannot be read, as if it were damaged. Otherwise the search then ends with an error, so
  // that a short fault of the volume does not lose the work since an older checkpoint.
  bool reject_unreadable = false;
  // Folders that are rejected without a look, because they could not be restored, with the reason.
  std::map<std::string, std::string> unusable;
};

// All members have written their files: complete the checkpoint, then call OnManifestWritten.
struct WriteManifestCommand {
  std::string folder;
  int64_t generation = 0;
  int64_t step = 0;
  job::v1::LedgerRecord ledger;
  std::vector<job::v1::CheckpointFile> files;
  std::string best;  // folder of the best model's checkpoint, which is kept however old it is; empty: none
};

// Remove the checkpoints that are no longer kept, because the best model is another one now.
struct PruneCommand {
  std::string best;  // as in WriteManifestCommand
};

// A checkpoint was given up: remove its files, so that they take no room. A checkpoint with a manifest stays.
struct DiscardCheckpointCommand {
  std::string folder;
};

// The job is evaluated: write the finished model from a checkpoint, then call OnExported.
struct ExportCommand {
  int64_t step = 0;    // of the checkpoint
  std::string folder;  // of the checkpoint, which is not the newest; empty: the newest
  job::v1::FittedTransform transform;
  job::v1::Observation observation;
  plan::v1::ExecutionPlan plan;  // in force
};

// Close the session of a process that is treated as lost.
struct DropCommand {
  std::string member;
  std::string instance;
};

// Drop the rendezvous keys of generations before `oldest` and refuse new ones.
struct FenceCommand {
  int64_t oldest = 0;
};

struct LogCommand {
  bool warning = false;
  std::string message;
};

// The job is over: end the process with this exit code. The last command.
struct FinishCommand {
  int exit_code = 0;
};

// The journal holds the last state, the members are redirected: end the process. The last command.
struct HandedOverCommand {
  int64_t to_term = 0;
};

// One of them. A class, so that its copies, moves and destructor are compiled in one source (commands.cc), not in each.
class Command
    : public std::variant<SendCommand, JournalCommand, StepCommand, DrainCommand, EvaluationCommand, RollbackCommand,
                          FindCheckpointCommand, WriteManifestCommand, PruneCommand, DiscardCheckpointCommand,
                          ExportCommand, DropCommand, FenceCommand, LogCommand, FinishCommand, HandedOverCommand> {
 public:
  using variant::variant;
  Command(const Command& other);
  Command(Command&& other) noexcept;
  Command& operator=(const Command& other);
  Command& operator=(Command&& other) noexcept;
  ~Command();
};

}  // namespace medley::worker
