// Everything that a trainer needs for one generation: its device in the plan, its state, links to peers, the executor.
//
// The prepare thread builds it while the previous generation trains; afterwards only the worker thread uses it. Any
// thread may call Abort: it ends all current and later waits for peers. An aborted generation cannot train but still
// holds its state. A trainer that only sends its state to others (a source that is not a peer) has no device;
// trains() is then false.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/execution_plan.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/checkpoint/files.h"
#include "worker/collective/group.h"
#include "worker/data/block_order.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"
#include "worker/model/graph.h"
#include "worker/pipeline/executor.h"
#include "worker/pipeline/sequence.h"
#include "worker/ps/client.h"
#include "worker/trainer/group_links.h"
#include "worker/trainer/role.h"
#include "worker/trainer/trainer_context.h"
#include "worker/trainer/trainer_state.h"
#include "worker/trainer/transfer_plan.h"

namespace medley::worker {

class GenerationRuntime final : public PreparedGeneration {
 public:
  // `held`: this trainer's state of order.source_generation; null when it has none.
  static absl::StatusOr<std::shared_ptr<GenerationRuntime>> Build(const job::v1::Prepare& order,
                                                                  const TrainerContext& context,
                                                                  std::shared_ptr<const Dataset> data,
                                                                  std::shared_ptr<TrainerState> held,
                                                                  std::stop_token stop);

  int64_t generation() const override { return order_.generation(); }
  job::v1::Warmed warmed() const override;
  void Abort() override;

  // Whether its state follows from that of the former generation.
  bool continues() const { return order_.origin() == job::v1::STATE_ORIGIN_PEERS; }
  bool trains() const { return device_ >= 0; }
  // Index of this trainer in the program; -1 unless trains().
  int device() const { return device_; }
  // The operations whose state this trainer writes to checkpoints: those of which it is the first replica. Call it only
  // if trains().
  std::set<int> Writes() const;
  const std::shared_ptr<TrainerState>& state() const { return state_; }

  // Rolls back `held` if necessary and transfers values between members, so that the new state is at order.step.
  absl::Status TakeState(const job::v1::Switch& order);
  // Begins a step. Returns the one that this completes, as Executor::RunStep.
  absl::StatusOr<std::optional<StepResult>> RunStep(const StepLease& lease, const StepLease* ahead);
  // Completes the next open step; nullopt when none is open.
  absl::StatusOr<std::optional<StepResult>> Drain();
  // Gives up the open steps: until another one begins, nothing uses the state. Call Abort before, or this waits for
  // what peers send.
  void LoseOpenSteps();
  // Calls `progressed` after each chunk of the data. All trainers of a pipeline start together.
  // `name`: of the data, for the rendezvous of those who read them.
  absl::StatusOr<ScoreSums> Evaluate(const Dataset& data, const std::string& name, int64_t step,
                                     std::function<void()> progressed);
  // As Executor::Probe.
  absl::StatusOr<double> Probe(int count, base::nanoseconds pause);
  std::stop_token aborted() const { return abort_.get_token(); }  // any thread

 private:
  GenerationRuntime(job::v1::Prepare order, const TrainerContext& context);

  void FindDevice();
  absl::Status MakeState(std::stop_token stop);
  absl::Status AgreeOnMoves(KeyValueStore& store, std::stop_token stop);
  absl::Status ConnectGroups(KeyValueStore& store, std::stop_token stop);
  absl::Status ConnectReducers(const std::vector<std::string>& trainers, KeyValueStore& store, std::stop_token stop);
  absl::Status ConnectServers(std::stop_token stop);
  absl::Status SendAndReceive(const job::v1::Switch& order, int64_t& samples);
  absl::Status SendState(const job::v1::Switch& order);
  absl::Status ReceiveState(const job::v1::Switch& order, int64_t& samples);
  // `adds`: gradients, so memory and GPUs may help.
  absl::StatusOr<std::unique_ptr<Group>> Connect(const std::string& name, const std::vector<std::string>& members,
                                                 KeyValueStore& store, std::stop_token stop, bool adds);
  absl::Status Compile();
  bool Averages() const;  // replicas differ, except after steps that agree
  absl::Status Transfer(const job::v1::Switch& order);
  bool HasTables(int device) const;
  int TableRank(int of) const;  // a device's rank among those with tables, which push to the servers
  bool NeedsServers() const;
  WaitLimit Limit() const;
  absl::Status AwaitData(const std::string& name, int64_t step);

  const job::v1::Prepare order_;
  const TrainerContext& context_;
  model::ExecutionPlan plan_;
  int device_ = -1;
  Programs programs_;  // of the plan; empty unless trains()
  Sequence sequence_;  // this device's part of the training program
  std::string program_hash_;
  std::vector<job::v1::Peer> trainers_;        // all trainers of the generation, by device
  std::vector<std::string> transfer_members_;  // names of the transfer group's members, by rank
  int transfer_rank_ = -1;
  std::vector<Move> moves_;
  std::shared_ptr<const Dataset> data_;
  BlockOrder blocks_;                    // in which the data are shuffled
  std::shared_ptr<TrainerState> held_;   // the state of the source generation
  std::shared_ptr<TrainerState> state_;  // the state of this generation; held_ when the operations are the same
  std::stop_source abort_;
  std::set<std::string> data_read_;  // names of data that all trainers of the generation have read
  std::unique_ptr<Group> transfer_;
  std::unique_ptr<Group> world_;
  std::vector<std::unique_ptr<Group>> reducing_;  // in which gradients are added; borrowed by reducer_
  std::unique_ptr<GroupChannel> channel_;
  std::unique_ptr<GroupReducer> reducer_;
  std::unique_ptr<PsClient> servers_;
  std::unique_ptr<Executor> executor_;  // last member: joins its thread before the links are destroyed
};

}  // namespace medley::worker
