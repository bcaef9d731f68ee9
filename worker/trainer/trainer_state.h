// A trainer's part of the model: the dense parameters of its operations with their optimizer state, embedding tables if
// the plan has no servers, and the number of samples that the state contains. The last steps of all of them can be
// undone.
//
// Outlives generations: when a trainer's operations do not change, the next generation uses the same state.
// Not thread-safe: the prepare thread creates it, afterwards only the worker thread uses it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"
#include "worker/model/graph.h"
#include "worker/model/make_block.h"
#include "worker/pipeline/block_compute.h"
#include "worker/pipeline/dense_values.h"
#include "worker/pipeline/whole_tables.h"
#include "worker/trainer/trainer_snapshot.h"

namespace medley::worker {

class TrainerState {
 public:
  struct Options {
    std::vector<model::OperationRange> blocks;  // of the program, on this device; ascending
    bool local_tables = false;                  // keep the blocks' sparse parameters in this process
    BlockSettings settings;
    BlockMaker make_block = MakeModelBlock;
    // Whether a state of these options is one of the others: the rest is the same for all states of a trainer.
    bool Keeps(const Options& other) const {
      return blocks == other.blocks && local_tables == other.local_tables &&
             settings.kept_updates == other.settings.kept_updates && settings.tables == other.settings.tables;
    }
  };
  // Creates the state of step 0 from the seed.
  static absl::StatusOr<std::shared_ptr<TrainerState>> Create(const Graph& graph, const Options& options);

  const Options& options() const { return options_; }
  // One a block, in the order of options().blocks.
  const std::vector<std::unique_ptr<BlockCompute>>& models() const { return models_; }
  WholeTables* tables() { return tables_.get(); }
  // The sum over all blocks that compute on a device. Any thread.
  TableCounts DeviceTables() const;

  int64_t AppliedStep() const;
  // The newest step whose values all replicas have or had; AppliedStep() unless they differ.
  int64_t AgreedStep() const;
  // Called when a generation begins: whether its replicas will differ. Now they are equal.
  absl::Status SetDiffers(bool differs);
  // The oldest step that UndoTo can reach; above AppliedStep() if some blocks have applied one step more than others
  // and cannot undo it.
  int64_t UndoLimit() const;
  int64_t samples() const;
  // A step with this many samples begins. They count as soon as it has been applied.
  void BeginStep(int64_t step, int64_t samples);
  // FailedPrecondition beyond UndoLimit.
  absl::Status UndoTo(int64_t step);
  // Sets step and sample count after the values were written from outside.
  void SetApplied(int64_t step, int64_t samples);

  // The operations whose state this trainer holds, ascending.
  const std::vector<int>& Holds() const { return holds_; }  // any thread
  // All values of one operation, in an order that does not depend on the plan. Empty when the state is not held here.
  std::vector<DenseValues> Values(int operation);

  // Loads its operations from a complete checkpoint. Errors: DataLoss, also when a parameter is missing or has another
  // shape.
  absl::Status Load(const Volume& volume, const CheckpointManifest& manifest);
  // Copies the state of these operations, of those that it holds.
  absl::StatusOr<TrainerSnapshot> Snapshot(const std::set<int>& operations);

 private:
  TrainerState(Options options, std::vector<std::unique_ptr<BlockCompute>> models, std::vector<ParameterSpec> specs,
               std::shared_ptr<WholeTables> tables);
  int64_t DenseStep() const;  // the step that all blocks have applied
  // A dense parameter, wherever its values are.
  struct Held {
    ParameterSpec spec;
    DenseValues weights, state;
  };
  std::vector<Held> Parameters();
  bool Has(int operation) const;

  const Options options_;
  const std::vector<std::unique_ptr<BlockCompute>> models_;
  const std::vector<ParameterSpec> table_specs_;  // the specs of tables_
  const std::shared_ptr<WholeTables> tables_;     // null: no tables in this process
  std::vector<int> holds_;                        // constant after construction
  int64_t base_samples_ = 0;                      // of the steps before those in begun_
  std::map<int64_t, int64_t> begun_;              // samples by step: those that can be undone, and open ones
};

// The number of samples in a checkpoint's state. Like the ledger, takes into account that the last batch of a data
// epoch may be smaller.
int64_t SamplesAt(const CheckpointManifest& manifest);

}  // namespace medley::worker
