// Computes a model from PyTorch in a process of its own: `medley-worker --role predictor`, which has an empty
// environment, no other open files, no network, and may start and write nothing (worker/sandbox/confine.h). So a model
// that does more than compute gets no further than in a training. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <vector>

#include "worker/predict/compute.h"

namespace medley::worker {

class ProgramProcess final : public Compute {
 public:
  // Starts it on the model's folder and waits until it has read the model. `longest`: for that, and for each answer.
  // Errors: its own (those of ReadExportedProgram and AtenBlock::Create); Internal when medley-worker does not lie
  // beside this program, or the process ended without a word; DeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<ProgramProcess>> Start(const LoadedModel& model,
                                                               std::chrono::seconds longest = std::chrono::minutes(10));
  ~ProgramProcess() override;  // ends it
  ProgramProcess(const ProgramProcess&) = delete;
  ProgramProcess& operator=(const ProgramProcess&) = delete;

  absl::Status Logits(const Batch& rows, std::vector<float>& logits) override;

 private:
  ProgramProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  absl::StatusOr<std::string> Answer();
  absl::Status Ended(const absl::Status& why);

  pid_t pid_;
  int socket_;
  int outputs_ = 0;
};

}  // namespace medley::worker
