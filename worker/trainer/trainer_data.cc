#include "worker/trainer/trainer_data.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/data/label_values.h"
#include "worker/data/memory_estimate.h"
#include "worker/export/initial_weights.h"
#include "worker/model/fit_graph.h"

namespace medley::worker {
namespace {

void LogLine(const std::string& line) { base::log::Info(line); }

}  // namespace

TrainerData::TrainerData(const model::JobSpec& spec, Copy copy, LoadOptions load, base::Clock& clock)
    : spec_(spec), copy_(std::move(copy)), load_(std::move(load)), clock_(clock) {}

absl::StatusOr<std::shared_ptr<const Dataset>> TrainerData::ReadTrain(const std::stop_token& stop) const {
  LoadOptions load = load_;
  load.stop = stop;
  load.clock = &clock_;
  if (copy_) MEDLEY_RETURN_IF_ERROR(copy_(stop));
  MEDLEY_RETURN_IF_ERROR(CheckDataFit(spec_.data, load.root, CurrentMemoryRoom(), load.place));
  ReadProgress progress("the training data", clock_, LogLine);
  load.progress = &progress;
  return Dataset::Load(spec_.data.train, spec_.data, nullptr, load);
}

absl::StatusOr<std::shared_ptr<const Dataset>> TrainerData::Train(const std::stop_token& stop) {
  base::MutexLock lock(mutex_);
  if (train_ != nullptr && train_->damaged()) {  // the graph is that of the same data
    base::log::Warn("reading the training data again, because samples could not be read from their file");
    MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> again, ReadTrain(stop));
    if (again->digest() != train_->digest()) {
      return base::InvalidArgument("the training data were changed since this trainer read them first");
    }
    train_ = std::move(again);
  }
  if (train_ != nullptr) return train_;
  MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> train, ReadTrain(stop));
  const Transform& transform = train->transform();
  // The test data are read at the end; a mistake in their labels must not cost the training.
  for (const model::SourceSpec& source : model::EvaluationSources(spec_.data)) {
    MEDLEY_RETURN_IF_ERROR(
        CheckLabels(source, spec_.data, transform.label.classes, load_.root, stop, transform.header));
  }
  MEDLEY_ASSIGN_OR_RETURN(*graph_, FitGraph(spec_, *train, load_.root));
  MEDLEY_RETURN_IF_ERROR(UseInitialWeights(spec_, load_.root, transform.label.classes, InitialParts::kAll, *graph_));
  train_ = std::move(train);
  base::log::Info("read the training data",
                  {{"rows", std::to_string(train_->rows())}, {"bad_rows", std::to_string(train_->bad_rows())}});
  return train_;
}

absl::StatusOr<std::shared_ptr<const Dataset>> TrainerData::Test(const std::stop_token& stop,
                                                                 std::function<void()> progressed) {
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> train, Train(stop));
  base::MutexLock lock(mutex_);
  if (test_ == nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(test_, Read(*spec_.data.test, *train, stop, std::move(progressed)));
  }
  return test_;
}

absl::StatusOr<std::shared_ptr<const Dataset>> TrainerData::Validation(const std::stop_token& stop,
                                                                       std::function<void()> progressed) {
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> train, Train(stop));
  if (train->validation() != nullptr) return train->validation();
  base::MutexLock lock(mutex_);
  if (validation_ == nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(validation_, Read(spec_.data.validation->source, *train, stop, std::move(progressed)));
  }
  return validation_;
}

absl::StatusOr<std::shared_ptr<const Dataset>> TrainerData::Read(const model::SourceSpec& source, const Dataset& train,
                                                                 const std::stop_token& stop,
                                                                 std::function<void()> progressed) const {
  LoadOptions load = load_;
  load.stop = stop;
  load.clock = &clock_;
  load.on_piece = std::move(progressed);
  ReadProgress progress("the data of an evaluation", clock_, LogLine);
  load.progress = &progress;
  MEDLEY_ASSIGN_OR_RETURN(auto data, Dataset::Load(source, spec_.data, &train.transform(), load));
  MEDLEY_RETURN_IF_ERROR(CheckRows(*graph_, *data));
  return data;
}

std::string TrainedDigest(const Dataset& train, const Graph& graph, const BlockOrder& blocks) {
  std::string digest = train.digest();
  if (graph.imported != nullptr) digest += "-" + graph.imported->cut->program->digest;
  if (blocks.window > 0) digest += fmt::format("-{}x{}", blocks.window, blocks.block);
  return digest;
}

}  // namespace medley::worker
