// The role of a trainer: data, generations, steps, its part of checkpoints and evaluations. Contract: Role.
//
// Keeps at most three generations: the one in force, the one before until the first lease, and (in Member) the next.
#pragma once

#include <memory>

#include "worker/trainer/generation_runtime.h"
#include "worker/trainer/role.h"

namespace medley::worker {

class Trainer final : public Role {
 public:
  // `context` and what it points to outlive the trainer. `load` says how data is read.
  Trainer(TrainerContext context, LoadOptions load, Send send);
  ~Trainer() override;

  // Reads the training data, so that the first Prepare finds it; any thread. Errors are Prepare's to report.
  void Preload(std::stop_token stop);

  Held held() const override;
  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const job::v1::Prepare& order,
                                                              std::stop_token stop) override;
  absl::StatusOr<job::v1::Ready> Switch(const job::v1::Switch& order,
                                        std::shared_ptr<PreparedGeneration> next) override;
  absl::Status Train(int64_t generation, const job::v1::StepLease& lease, const job::v1::StepLease* ahead) override;
  absl::Status Checkpoint(const job::v1::Checkpoint& order,
                          std::function<void(absl::StatusOr<job::v1::Checkpointed>)> done) override;
  absl::StatusOr<job::v1::Evaluated> Evaluate(const job::v1::Evaluate& order) override;
  void Abort() override;
  job::v1::Halted Halt(int64_t generation) override;

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
