// The computation of one stage replica, as the pipeline sees it: numbers in, numbers out.
//
// Implemented by model::StageModel (worker/model). Not thread-safe: one thread at a time. Life of a
// step:
//   BeginStep -> SetRows (a table each) -> Forward/Backward of every micro-batch, in the schedule's
//   order
//   -> gradients() summed over the replicas by the caller, RowGradients to the tables' owner ->
//   ApplyUpdate
// Spans returned by Forward stay valid until the next Forward of the same micro-batch, those of
// Backward and Infer until the next call of either.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/batch.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker {

// A dense parameter with its values; `state` is the optimizer's (empty for SGD).
struct DenseParameter {
  ParameterSpec spec;
  std::span<float> weights;
  std::span<float> state;
  std::span<float> gradient;
};

struct StepShape {
  int64_t step = 0;  // that this step leads to: ApplyUpdate takes the state from step-1 to step
  int micro_batches = 1;
  int global_samples = 0;  // of the whole batch over all replicas: gradients are sums over samples / this
};

class StageCompute {
 public:
  virtual ~StageCompute() = default;

  virtual int InputWidth() const = 0;   // floats a sample from the stage before; 0 for the first stage
  virtual int OutputWidth() const = 0;  // floats a sample to the stage after; 0 for the last stage
  virtual bool IsLast() const = 0;
  virtual const std::vector<ParameterSpec>& Tables() const = 0;  // sparse parameters; rows come from outside

  virtual void BeginStep(const StepShape& shape) = 0;
  // Rows (row-major, distinct keys of the step x columns) of Tables()[table]. `features.ids` given
  // to Forward are positions in these rows. The values are copied. Row gradients are zeroed.
  virtual void SetRows(int table, std::span<const float> rows) = 0;
  // `input` is samples x InputWidth (empty for a first stage). Returns samples x OutputWidth; empty
  // for the last stage, which adds to LossSum. Features and
  // input are kept by reference until Backward of the same micro-batch.
  virtual absl::StatusOr<std::span<const float>> Forward(int micro, const BatchView& features,
                                                         std::span<const float> input) = 0;
  // `output_gradient` is samples x OutputWidth (empty for the last stage). Returns samples x
  // InputWidth.
  virtual absl::StatusOr<std::span<const float>> Backward(int micro, std::span<const float> output_gradient) = 0;
  // Forward without keeping anything; the last stage returns one logit a sample. Rows as in
  // SetRows.
  virtual absl::StatusOr<std::span<const float>> Infer(const BatchView& features, std::span<const float> input) = 0;

  // Of this replica's samples since BeginStep, in the rows' order, already divided by
  // global_samples.
  virtual std::span<const float> RowGradients(int table) const = 0;
  // All dense gradients of the stage in one span (for the reduction), in the order of Parameters().
  virtual std::span<float> Gradients() = 0;
  // Current values. The spans move with every ApplyUpdate and UndoTo: ask again.
  virtual std::vector<DenseParameter> Parameters() = 0;

  virtual double LossSum() const = 0;  // over this replica's samples since BeginStep; last stage
  virtual int64_t LossSamples() const = 0;

  // Applies Gradients() and keeps the old values for one undo.
  virtual absl::Status ApplyUpdate(const Optimizer& optimizer) = 0;
  // The step that the dense parameters stand at, and how far back UndoTo reaches (step or step -
  // 1).
  virtual int64_t AppliedStep() const = 0;
  virtual int64_t UndoLimit() const = 0;
  // FailedPrecondition beyond UndoLimit.
  virtual absl::Status UndoTo(int64_t step) = 0;
  // After the parameters were written from outside (checkpoint, state transfer): they stand at
  // `step`, no undo.
  virtual void SetAppliedStep(int64_t step) = 0;
};

}  // namespace medley::worker
