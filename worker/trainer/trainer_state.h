// What a trainer knows of the model: the dense parameters of its operations with their optimizer state, embedding
// tables where there are no servers, and the number of samples in them. Undone together.
//
// Outlives generations: when a trainer's operations do not change, the next generation works on the same state.
// Not thread-safe: the worker thread's, or the prepare thread's before anybody else knows it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/checkpoint/layout.h"
#include "worker/checkpoint/writer.h"
#include "worker/model/graph.h"
#include "worker/model/stage_model.h"
#include "worker/pipeline/local_tables.h"

namespace medley::worker {

class TrainerState {
 public:
  struct Options {
    model::OperationRange range;
    bool local_tables = false;  // keep the range's sparse parameters here
    Optimizer optimizer;
    uint64_t seed = 1;
  };
  // At step 0, from the seed.
  static absl::StatusOr<std::shared_ptr<TrainerState>> Create(const Graph& graph, const Options& options);

  const Options& options() const { return options_; }
  StageModel& model() { return *model_; }
  LocalTables* tables() { return tables_.get(); }

  int64_t AppliedStep() const;
  int64_t UndoLimit() const;
  int64_t samples() const { return samples_; }
  // After a step of `samples`.
  void CountStep(int64_t samples);
  // FailedPrecondition beyond UndoLimit.
  absl::Status UndoTo(int64_t step);
  // After the values were written from outside.
  void SetApplied(int64_t step, int64_t samples);

  // Operations of which there is state here, ascending.
  const std::vector<int>& Holds() const { return holds_; }  // any thread
  // All values of one of them, in an order that does not depend on the plan. Empty when there is no state.
  std::vector<std::span<float>> Values(int operation);

  // Takes its operations from a complete checkpoint. Errors: DataLoss (missing or of another shape, too).
  absl::Status Load(const std::filesystem::path& root, const CheckpointManifest& manifest);
  // Adds everything held to a checkpoint's file.
  absl::Status Save(CheckpointWriter& writer);

 private:
  TrainerState(Options options, std::unique_ptr<StageModel> model, std::vector<ParameterSpec> tables);

  const Options options_;
  const std::unique_ptr<StageModel> model_;
  const std::vector<ParameterSpec> table_specs_;  // of tables_
  const std::unique_ptr<LocalTables> tables_;     // null: none here
  std::vector<int> holds_;                        // constant after construction
  int64_t samples_ = 0;
  int64_t undo_samples_ = 0;
};

// Samples in the state after `step` steps, by the ledger's rule (the last batch of a data epoch is what is left).
int64_t SamplesAt(const CheckpointManifest& manifest);

}  // namespace medley::worker
