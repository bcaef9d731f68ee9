// Runs single instructions of a program on one device: passes, messages, pushes, reductions, updates. When a step
// begins or ends only the executor knows.
//
// Not thread-safe: one thread calls it. When the device reduces several blocks, threads of its own do it while other
// instructions run (reduction_thread.h). The executor owns it; what it is made with must outlive it.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/program/program.h"
#include "common/program/samples.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/executor.h"
#include "worker/pipeline/reduction_thread.h"
#include "worker/pipeline/sequence.h"
#include "worker/pipeline/value_store.h"

namespace medley::worker {

// A step, or a chunk of test data, on its way through the instructions.
struct RunningStep {
  const program::Program& program;
  const program::Binding& binding;
  const PreparedStep& data;
  bool evaluation = false;
  int64_t number = 0;        // of the step or chunk
  int slot = 0;              // of the open steps
  Scorer* scorer = nullptr;  // evaluation
  size_t* pushes = nullptr;  // instructions of the step that pushed rows so far
  const WaitLimit& limit;

  // The place of a micro-batch in the value store.
  int At(int micro) const { return slot * program.micro_batches + micro; }
};

class InstructionRunner {
 public:
  // `program`: for training; that for evaluation has the same blocks. `seat_of`: SeatsOf(program, sequence).
  InstructionRunner(const program::Program& program, int device, const Sequence& sequence,
                    const std::vector<size_t>& seat_of, const ExecutorParts& parts, const Optimizer& optimizer);

  // Errors: those of the parts, Cancelled.
  absl::Status Execute(const program::Instruction& instruction, RunningStep& running);
  // Waits for the reductions under way, and drops them: they use the gradients.
  void EndReductions() {
    if (reductions_.has_value()) reductions_->Reset();
  }

  // Runs `work` and adds its duration to the step's communication time.
  template <typename Work>
  auto Timed(const Work& work) {
    const base::SteadyTime start = parts_.clock->Steady();
    auto result = work();
    comm_ += parts_.clock->Steady() - start;
    return result;
  }
  // The communication time since it was set to 0. The executor counts other waits out of it.
  base::nanoseconds& comm() { return comm_; }

 private:
  const program::Block& BlockAt(int block) const { return program_.blocks[static_cast<size_t>(block)]; }
  BlockCompute& ComputeOf(int block) const { return *parts_.blocks[static_cast<size_t>(block)]; }
  size_t SeatOf(int block) const { return seat_of_[static_cast<size_t>(block)]; }
  const program::Block& BlockOf(const program::Instruction& instruction) const { return BlockAt(instruction.block); }
  std::span<const float> Source(const program::Flow& flow, int micro) const;
  absl::Status Move(const program::Instruction& instruction, RunningStep& running);
  absl::Status Forward(const program::Instruction& instruction, RunningStep& running);
  absl::Status Backward(const program::Instruction& instruction, RunningStep& running);
  absl::Status Push(const program::Instruction& instruction, RunningStep& running);
  absl::Status Reduce(const program::Instruction& instruction, RunningStep& running);
  // Until another thread has reduced the gradients of the block.
  absl::Status AwaitReduction(int block);
  absl::Status Share(const program::Instruction& instruction, RunningStep& running);
  absl::Status Norm(RunningStep& running);
  absl::Status Update(const program::Instruction& instruction, RunningStep& running);
  absl::Status Average(const program::Instruction& instruction, RunningStep& running);

  const program::Program& program_;
  const int device_;
  const Sequence& sequence_;
  const ExecutorParts& parts_;
  const Optimizer optimizer_;
  const std::vector<size_t>& seat_of_;
  base::nanoseconds comm_{0};
  std::vector<float> averaged_;  // parameters and optimizer state of a block
  ValueStore values_;
  std::optional<ReductionThreads> reductions_;  // last: its threads use the others
};

}  // namespace medley::worker
