// The interface of the computation of one block of a program. BlockModel (worker/model) implements it.
//
// Not thread-safe: one thread at a time. The order of calls in a step:
//   1. BeginStep
//   2. SetRows, once per table
//   3. Forward and Backward of every micro-batch, in the schedule's order
//   4. The caller sums Gradients() over the replicas and pushes RowGradients() to the owner of the tables.
//   5. ApplyUpdate
// A span returned by Forward is valid until the next Forward of the same micro-batch. Spans returned by Backward and
// Infer are valid until the next call of either.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/batch.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker {

// A dense parameter with its values. `state` is the optimizer state, empty for SGD.
struct DenseParameter {
  ParameterSpec spec;
  std::span<float> weights;
  std::span<float> state;
  std::span<float> gradient;
};

struct StepShape {
  int64_t step = 0;  // ApplyUpdate takes the parameters from step - 1 to step
  int micro_batches = 1;
  int global_samples = 0;  // of all replicas; gradients are sums over samples divided by this
};

class BlockCompute {
 public:
  virtual ~BlockCompute() = default;

  virtual int InputWidth() const = 0;   // floats per sample of its input; 0 for the first block
  virtual int OutputWidth() const = 0;  // floats per sample of its output; 0 for the last block
  virtual bool IsLast() const = 0;
  virtual const std::vector<ParameterSpec>& Tables() const = 0;  // sparse parameters; SetRows supplies their rows

  virtual void BeginStep(const StepShape& shape) = 0;
  // Copies the rows of Tables()[table] that this step uses (row-major, distinct keys x columns) and sets their
  // gradients to zero. The `features.ids` of Forward are positions in these rows.
  virtual void SetRows(int table, std::span<const float> rows) = 0;
  // `input` is samples x InputWidth (empty for the first block). Returns samples x OutputWidth; the last block returns
  // an empty span and adds to LossSum. Refers to `features` and `input` until Backward of the same micro-batch.
  virtual absl::StatusOr<std::span<const float>> Forward(int micro, const BatchView& features,
                                                         std::span<const float> input) = 0;
  // `output_gradient` is samples x OutputWidth (empty for the last block). Returns samples x InputWidth.
  virtual absl::StatusOr<std::span<const float>> Backward(int micro, std::span<const float> output_gradient) = 0;
  // A forward pass without loss and gradients. The last block returns the logits, samples x the model's outputs. Uses
  // the rows of SetRows.
  virtual absl::StatusOr<std::span<const float>> Infer(const BatchView& features, std::span<const float> input) = 0;

  // The gradients of the rows of SetRows, in their order: summed over this replica's samples since BeginStep, divided
  // by global_samples.
  virtual std::span<const float> RowGradients(int table) const = 0;
  // All dense gradients of the block in one span, in the order of Parameters(). The caller sums them over the replicas.
  virtual std::span<float> Gradients() = 0;
  // The current values. ApplyUpdate and UndoTo invalidate the spans: call Parameters() again.
  virtual std::vector<DenseParameter> Parameters() = 0;

  virtual double LossSum() const = 0;  // over this replica's samples since BeginStep; last block only
  virtual int64_t LossSamples() const = 0;

  // Applies Gradients() and keeps the old values, so that one update can be undone.
  virtual absl::Status ApplyUpdate(const Optimizer& optimizer) = 0;
  // The step that the dense parameters contain, and the oldest step that UndoTo can reach (this step or the one
  // before).
  virtual int64_t AppliedStep() const = 0;
  virtual int64_t UndoLimit() const = 0;
  // FailedPrecondition beyond UndoLimit.
  virtual absl::Status UndoTo(int64_t step) = 0;
  // Called after the parameters were written from outside (checkpoint, state transfer): they now contain `step`, and no
  // undo is possible.
  virtual void SetAppliedStep(int64_t step) = 0;
};

}  // namespace medley::worker
