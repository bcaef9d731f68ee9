// What the state machine wants done, in this order. Plain values.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/ledger.h"

namespace medley::worker {

// To the process `instance` of a member; dropped silently when it is not connected any more.
struct SendCommand {
  std::string member;
  std::string instance;
  job::v1::SessionResponse message;
};

// Must be on disk before any later command is carried out.
struct JournalCommand {
  job::v1::CoordinatorState state;
};

// One line of steps.jsonl; a NaN loss is written as null.
struct StepCommand {
  StepRange range;
  int64_t generation = 0;
  double loss = 0;
};

// The state stands at `to_step` again.
struct RollbackCommand {
  int64_t to_step = 0;
  int64_t generation = 0;
};

// Find the newest whole checkpoint; answer with CheckpointFound.
struct FindCheckpointCommand {};

// All parts are written: complete the checkpoint; answer with ManifestWritten.
struct WriteManifestCommand {
  std::string folder;
  int64_t generation = 0;
  int64_t step = 0;
  job::v1::LedgerRecord ledger;
  std::vector<job::v1::CheckpointFile> files;
};

// Close the session: the process is taken for lost.
struct DropCommand {
  std::string member;
  std::string instance;
};

// Old rendezvous keys are void: only generations from `oldest` on count.
struct FenceCommand {
  int64_t oldest = 0;
};

struct LogCommand {
  bool warning = false;
  std::string message;
};

// It is over. The last command.
struct FinishCommand {
  int exit_code = 0;
};

using Command = std::variant<SendCommand, JournalCommand, StepCommand, RollbackCommand, FindCheckpointCommand,
                             WriteManifestCommand, DropCommand, FenceCommand, LogCommand, FinishCommand>;

}  // namespace medley::worker
