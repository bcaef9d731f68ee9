// Writes the learning curve as a TensorBoard event file into the folder `tensorboard` of the job's folder.
//
// Scalars: training/loss (mean over the steps since the last point), training/learning_rate,
// training/samples_per_second, validation/METRIC for each metric of an evaluation, training/loss_between_evaluations.
// Points of training are a second apart at first and further apart in a long training, so the files stay small.
//
// TensorBoard reads the files of a folder in the order of their names and never returns to an earlier one. So each
// process writes a file of its own, whose name is larger than those that exist. A SessionLog START event with a step
// makes TensorBoard forget what it has read of that and later steps: it begins a file, and it follows a rollback.
// A former coordinator that still runs therefore writes only into its own file, which is read before the others.
//
// Not thread-safe. Times are passed in.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "worker/checkpoint/files.h"
#include "worker/coordinator/core/commands.h"

namespace medley::worker {

inline constexpr char kTensorBoardFolder[] = "tensorboard";

class TensorBoard {
 public:
  struct Options {
    std::string writer;                                 // a part of the file's name: letters, digits and '-'
    std::function<double(int64_t step)> learning_rate;  // unset: not written
  };
  // The last step and the last evaluation that the job's folder knows. Later ones are written again.
  struct Position {
    int64_t step = 0;
    int64_t evaluation = 0;
  };
  // Creates the file.
  static absl::StatusOr<std::unique_ptr<TensorBoard>> Open(const Volume& volume, Options options, Position position,
                                                           base::WallTime now);
  ~TensorBoard();

  // Ignores a step that has been written; the core may report it again after a restart.
  absl::Status Add(const StepCommand& step, base::WallTime now);
  absl::Status Add(const EvaluationCommand& evaluation, base::WallTime now);
  absl::Status Rollback(const RollbackCommand& rollback, base::WallTime now);
  // Writes the point of the steps since the last one.
  absl::Status Flush(base::WallTime now);
  // Returns when the events are on the volume.
  absl::Status Sync();

 private:
  class Event;
  TensorBoard(Options options, Files& files, int fd, base::WallTime now);
  absl::Status Write(const Event& event);
  absl::Status Begin(int64_t step);  // the SessionLog
  double Seconds(base::WallTime now);

  const Options options_;
  Files& files_;
  const int fd_;
  const base::WallTime opened_at_;
  double last_seconds_ = 0;  // wall times of events never fall
  int64_t last_step_ = 0;
  int64_t last_evaluation_ = 0;  // its step
  base::WallTime written_at_{};
  // For the steps since the last point.
  double loss_sum_ = 0;
  int64_t losses_ = 0;
  int64_t steps_ = 0;
  int64_t samples_ = 0;
  std::optional<base::WallTime> rate_since_;  // nullopt: training has paused
};

}  // namespace medley::worker
