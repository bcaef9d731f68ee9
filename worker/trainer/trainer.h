// The role of a trainer: reads data, runs steps, and writes its part of checkpoints and evaluations. Role documents the
// functions.
//
// At most three generations exist at once: the one in force, the one before it until the first lease, and the next one,
// which Member holds.
#pragma once

#include <memory>

#include "worker/data/load_options.h"
#include "worker/trainer/role.h"
#include "worker/trainer/trainer_context.h"

namespace medley::worker {

class Trainer final : public Role {
 public:
  // The objects that `context` points to must outlive the trainer. `load` says how data is read.
  Trainer(TrainerContext context, LoadOptions load, Send send);
  ~Trainer() override;

  // Reads the training data ahead of the first Prepare. Any thread. Prepare reports the errors.
  void Preload(std::stop_token stop);

  Held held() const override;
  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const job::v1::Prepare& order,
                                                              std::stop_token stop) override;
  absl::StatusOr<job::v1::Ready> Switch(const job::v1::Switch& order,
                                        std::shared_ptr<PreparedGeneration> next) override;
  absl::Status Train(int64_t generation, const job::v1::StepLease& lease, const job::v1::StepLease* ahead) override;
  absl::Status Drain(const job::v1::Drain& order) override;
  absl::Status Checkpoint(const job::v1::Checkpoint& order,
                          std::function<void(absl::StatusOr<job::v1::Checkpointed>)> done) override;
  absl::StatusOr<job::v1::Evaluated> Evaluate(const job::v1::Evaluate& order) override;
  absl::StatusOr<double> Probe(const job::v1::Probe& order) override;
  void Abort() override;
  job::v1::Halted Halt(int64_t generation) override;
  absl::Status CheckDevice() override;

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
