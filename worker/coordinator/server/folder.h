// What the engine keeps of the job's folder. Operations on the volume share its ownership, because they may outlive the
// engine (worker/checkpoint/volume_thread.h).
#pragma once

#include <atomic>
#include <memory>

#include "worker/coordinator/server/checkpoint_files.h"
#include "worker/coordinator/server/engine.h"
#include "worker/coordinator/server/journal.h"
#include "worker/coordinator/server/log_files.h"
#include "worker/coordinator/server/step_log.h"
#include "worker/coordinator/server/tensor_board.h"

namespace medley::worker {

struct Engine::Folder {
  // Used by the thread for the journal.
  std::unique_ptr<Journal> journal;
  std::unique_ptr<StepLog> steps;        // steps.jsonl
  std::unique_ptr<StepLog> evaluations;  // metrics.jsonl
  std::unique_ptr<TensorBoard> board;    // null: not wanted
  // Used by the threads for logs and for checkpoints.
  std::unique_ptr<LogFiles> logs;            // null: it could not be opened
  std::atomic<bool> records_failed = false;  // since the last line that could be written to steps.jsonl
  std::atomic<bool> log_failed = false;
  // Used by the thread for checkpoints.
  std::unique_ptr<CheckpointFiles> checkpoints;
};

}  // namespace medley::worker
