// The interface of the computation of one block of a program. BlockModel (worker/model) implements it.
//
// Not thread-safe: one thread at a time. The order of calls in a step:
//   1. BeginStep
//   2. SetRows, once per table
//   3. Forward and Backward of every micro-batch, in the schedule's order
//   4. The caller sums Gradients() over the replicas and pushes RowGradients() to the owner of the tables.
//   5. ApplyUpdate
// An asynchronous schedule begins a step, in another slot, before the one before has ended. The first Backward of a
// step comes after ApplyUpdate of the one before, because there is one gradient.
// Values of a block are lists of spans, one for each of Inputs() or Outputs(). Those that Forward returns are valid
// until the next Forward of the same slot and micro-batch, those of Backward and Infer until the next call of either.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "worker/data/batch.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker {

// A dense parameter with its values. `state` is the optimizer state, empty for SGD. The spans are empty where the
// values are not in the host's memory: dense_values.h reaches them everywhere.
struct DenseParameter {
  ParameterSpec spec;
  std::span<float> weights;
  std::span<float> state;
  std::span<float> gradient;
};

// Which values of a dense parameter.
enum class DensePart { kWeights, kState, kGradient };

struct StepShape {
  int64_t step = 0;     // ApplyUpdate takes the parameters from step - 1 to step
  int64_t version = 0;  // both passes compute with the parameters after this step: from UndoLimit() to AppliedStep()
  int slot = 0;         // of the open steps
  int micro_batches = 1;
  int global_samples = 0;  // of all replicas that add their gradients; these are sums over samples divided by this
};

// A micro-batch of an open step.
struct Pass {
  int slot = 0;
  int micro = 0;
  int64_t first_sample = 0;  // of the micro-batch within the step's whole batch
};

// The output of an operation that passes from one block to another.
struct BlockValue {
  int operation = 0;  // that computes it
  int width = 0;      // floats per sample
};

using Values = std::span<const std::span<const float>>;

class BlockCompute {
 public:
  virtual ~BlockCompute() = default;

  virtual const std::vector<BlockValue>& Inputs() const = 0;     // of earlier blocks, by operation
  virtual const std::vector<BlockValue>& Outputs() const = 0;    // that later blocks use, by operation
  virtual bool IsLast() const = 0;                               // has the loss
  virtual const std::vector<ParameterSpec>& Tables() const = 0;  // sparse parameters; SetRows supplies their rows

  virtual void BeginStep(const StepShape& shape) = 0;
  // Copies the rows of Tables()[table] that this step uses (row-major, distinct keys x columns) and sets their
  // gradients to zero. The `features.ids` of Forward are positions in these rows.
  virtual void SetRows(int slot, int table, std::span<const float> rows) = 0;
  // Returns the outputs; the block with the loss adds to LossSum. Refers to `features` and `inputs` until Backward of
  // the same pass.
  virtual absl::StatusOr<Values> Forward(Pass pass, const BatchView& features, Values inputs) = 0;
  // Takes the gradients of the outputs, as other blocks use them; returns those of the inputs.
  virtual absl::StatusOr<Values> Backward(Pass pass, Values output_gradients) = 0;
  // A forward pass without loss and gradients, with the newest parameters and the rows of slot 0. The block with the
  // loss returns one value, the logits, samples x the model's outputs.
  virtual absl::StatusOr<Values> Infer(const BatchView& features, Values inputs) = 0;

  // The gradients of the rows of SetRows, in their order: summed over this replica's samples since BeginStep, divided
  // by global_samples.
  virtual std::span<const float> RowGradients(int slot, int table) const = 0;
  // All dense gradients of the block in one span of the host's memory, in the order of Parameters(), of the last step
  // that had a backward pass. The caller sums them over the replicas. A block whose gradients are elsewhere copies them
  // here, and takes them back before it uses them: only a step that needs them on the host asks for them.
  virtual std::span<float> Gradients() = 0;
  // The current values. ApplyUpdate and UndoTo invalidate the spans: call Parameters() again.
  virtual std::vector<DenseParameter> Parameters() = 0;
  // Copies values of Parameters()[parameter], from the float `first` on. Those that this class has are for blocks whose
  // values are in the host's memory; the same holds for the next three.
  virtual absl::Status ReadValues(size_t parameter, DensePart part, size_t first, std::span<float> to);
  virtual absl::Status WriteValues(size_t parameter, DensePart part, size_t first, std::span<const float> from);
  // The sum of the squares of the gradients of trained parameters, without copies of those of others.
  virtual absl::StatusOr<double> SquaredNorm();
  // Multiplies the gradients of trained parameters.
  virtual absl::Status ScaleGradients(float factor);
  // Sets the gradients of all parameters of this name, copies of each other, to their sum.
  virtual absl::Status SumCopies(std::string_view name);

  virtual double LossSum(int slot) const = 0;  // over this replica's samples since BeginStep; last block only
  virtual int64_t LossSamples(int slot) const = 0;

  // Applies Gradients() to the newest values and keeps the old ones, for open steps and so that it can be undone.
  virtual absl::Status ApplyUpdate(const Optimizer& optimizer) = 0;
  // The newest values are those of all replicas: keeps a copy of these and of the ones before. After the first call
  // UndoLimit() is the older of the two, and no step between them can be reached.
  virtual absl::Status KeepAgreed() = 0;
  // Forgets the copies: replicas no longer differ.
  virtual void ForgetAgreed() = 0;
  // The step that the newest dense parameters contain; the newest that all replicas have or had equal; and the oldest
  // whose values are kept.
  virtual int64_t AppliedStep() const = 0;
  virtual int64_t AgreedStep() const = 0;
  virtual int64_t UndoLimit() const = 0;
  // FailedPrecondition beyond UndoLimit.
  virtual absl::Status UndoTo(int64_t step) = 0;
  // Called after the parameters were written from outside (checkpoint, state transfer): they now contain `step`, and no
  // undo is possible.
  virtual void SetAppliedStep(int64_t step) = 0;
};

}  // namespace medley::worker
