// The functions of AtenBlock: each calls its Rep, and makes a status of what LibTorch throws.
#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/caught.h"
#include "worker/aten/freed_memory.h"
#include "worker/aten/precision.h"

namespace medley::worker::aten {

AtenBlock::AtenBlock(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
AtenBlock::~AtenBlock() = default;

absl::StatusOr<std::unique_ptr<AtenBlock>> AtenBlock::Create(const Graph& graph, model::OperationRange range,
                                                             const Options& options) try {
  KeepFreedMemory();
  const int count = static_cast<int>(graph.operations.size());
  if (graph.imported == nullptr || range.first < 0 || range.first >= range.end || range.end > count) {
    return base::InvalidArgument("a stage cannot have operations [{}, {}): the exported model has {}", range.first,
                                 range.end, count);
  }
  at::set_num_threads(std::max(1, options.threads));
  if (options.device != nullptr) AllowTf32(options.precision == Precision::kTf32);
  if (options.precision == Precision::kBfloat16 && options.device == nullptr && !ProcessorHasBfloat16()) {
    base::log::Warn("spec.training.precision bfloat16: this processor has no AVX512-BF16, so it computes in float32");
  }
  auto rep = std::make_unique<Rep>(graph, range, options);
  MEDLEY_RETURN_IF_ERROR(rep->Prepare());
  return std::unique_ptr<AtenBlock>(new AtenBlock(std::move(rep)));
} catch (const std::exception& error) {
  return FromTorch(error, fmt::format("operations [{}, {}) of the exported model", range.first, range.end));
}

const std::vector<worker::BlockValue>& AtenBlock::Inputs() const { return rep_->shape().inputs; }
const std::vector<worker::BlockValue>& AtenBlock::Outputs() const { return rep_->shape().outputs; }
bool AtenBlock::IsLast() const { return rep_->has_loss(); }
const std::vector<ParameterSpec>& AtenBlock::Tables() const { return rep_->tables(); }
void AtenBlock::BeginStep(const StepShape& shape) { rep_->BeginStep(shape); }
void AtenBlock::SetRows(int slot, int table, std::span<const float> rows) { rep_->SetRows(slot, table, rows); }

absl::StatusOr<Values> AtenBlock::Forward(Pass pass, const BatchView& features, Values inputs) {
  return CaughtPass(fmt::format("forward pass of micro-batch {} of {} samples", pass.micro, features.samples),
                    [&] { return rep_->Forward(pass, features, inputs); });
}

absl::StatusOr<Values> AtenBlock::Backward(Pass pass, Values output_gradients) {
  return CaughtPass(fmt::format("backward pass of micro-batch {} of {} samples", pass.micro, rep_->SamplesOf(pass)),
                    [&] { return rep_->Backward(pass, output_gradients); });
}

absl::StatusOr<Values> AtenBlock::Infer(const BatchView& features, Values inputs) {
  return CaughtPass(fmt::format("inference of {} samples", features.samples),
                    [&] { return rep_->Infer(features, inputs); });
}

std::span<const float> AtenBlock::RowGradients(int slot, int table) const {
  return rep_->step(slot).tables.Gradients(static_cast<size_t>(table));
}
double AtenBlock::LossSum(int slot) const {
  const absl::StatusOr<double> sum = Caught("the sum of losses", [&] { return rep_->LossSum(slot); });
  if (!sum.ok()) failure_ = sum.status();
  return sum.ok() ? *sum : std::numeric_limits<double>::quiet_NaN();
}
int64_t AtenBlock::LossSamples(int slot) const { return rep_->step(slot).loss_samples; }
RecordingCounts AtenBlock::Recordings() const { return rep_->Recordings(); }
ParameterStore& AtenBlock::store() const { return rep_->store(); }

}  // namespace medley::worker::aten
