// The role of a parameter server: one shard per generation, with rows from the seed, other shards or a checkpoint. Role
// documents the functions.
//
// A step is applied when every trainer has pushed it and the coordinator has leased it to this server. So the rows do
// not change between the order of a checkpoint and the next lease. Meanwhile the server takes a snapshot, which costs
// nothing, and writes it while training goes on.
#pragma once

#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/ps/parameter_server.h"
#include "worker/ps/row_tiers.h"
#include "worker/trainer/role.h"

namespace medley::worker {

struct ServerContext {
  std::vector<ParameterSpec> tables;  // sparse parameters of the model
  Optimizer optimizer;
  uint64_t seed = 1;
  RowTierOptions tiers;  // of each shard
  SessionOptions session;
  Volume checkpoint_root;
  CheckpointOwner owner;  // of the checkpoints that it writes
  const base::Clock* clock = nullptr;
  base::nanoseconds step_timeout{base::seconds(90)};
};

class ServerRole final : public Role {
 public:
  // `server` must outlive the role.
  ServerRole(ServerContext context, ParameterServer& server, Send send);
  ~ServerRole() override;

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

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
