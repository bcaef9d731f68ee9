// The data of a trainer: each source is read when it is first needed, and kept. With them the graph of the model, of
// which parts follow from the training data. Thread-safe; who waits for data that another thread reads waits for it.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/job_spec.h"
#include "worker/data/block_order.h"
#include "worker/data/dataset.h"
#include "worker/data/load_options.h"
#include "worker/model/graph.h"

namespace medley::worker {

class TrainerData {
 public:
  // Copies what lies in an object store to this machine, and lets the spec name the copies.
  using Copy = std::function<absl::Status(const std::stop_token& stop)>;
  // `spec` and `clock` outlive the object. `copy` is called before data are read; unset: nothing lies in such a store.
  TrainerData(const model::JobSpec& spec, Copy copy, LoadOptions load, base::Clock& clock);

  // The graph of the model; set when Train has returned without an error, and then constant.
  const Graph& graph() const { return *graph_; }
  // The training data. Reads them again when samples could not be read from their file. Errors: those of
  // `copy`, Dataset::Load, CheckDataFit, CheckLabels, FitGraph and UseInitialWeights; InvalidArgument for data that
  // were changed since they were read first.
  absl::StatusOr<std::shared_ptr<const Dataset>> Train(const std::stop_token& stop);
  // `progressed` is called after each piece. Errors: those of Train, Dataset::Load and CheckRows.
  absl::StatusOr<std::shared_ptr<const Dataset>> Test(const std::stop_token& stop, std::function<void()> progressed);
  absl::StatusOr<std::shared_ptr<const Dataset>> Validation(const std::stop_token& stop,
                                                            std::function<void()> progressed);

 private:
  absl::StatusOr<std::shared_ptr<const Dataset>> ReadTrain(const std::stop_token& stop) const;
  absl::StatusOr<std::shared_ptr<const Dataset>> Read(const model::SourceSpec& source, const Dataset& train,
                                                      const std::stop_token& stop,
                                                      std::function<void()> progressed) const;

  const model::JobSpec& spec_;
  const Copy copy_;
  const LoadOptions load_;
  base::Clock& clock_;
  const std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  base::Mutex mutex_;
  std::shared_ptr<const Dataset> train_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Dataset> test_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Dataset> validation_ ABSL_GUARDED_BY(mutex_);  // null: not read, or a part of train_
};

// Names what a job trains and in which order: the same for all its trainers, from its start to its end. A model's file
// is a part of it.
std::string TrainedDigest(const Dataset& train, const Graph& graph, const BlockOrder& blocks);

}  // namespace medley::worker
