// The functions of AtenBlock: each calls its Rep, and makes a status of what LibTorch throws.
#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/errors.h"
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

namespace {

// What `work` returns, or a status of what it throws.
template <typename Work>
auto Caught(std::string_view what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return FromTorch(error, what);
  }
}

// The same for a pass, whose samples decide how much memory it takes.
template <typename Work>
absl::StatusOr<Values> CaughtPass(const std::string& what, const Work& work) {
  absl::StatusOr<Values> values = Caught(what, work);
  if (!absl::IsResourceExhausted(values.status()) || base::Message(values.status()).starts_with(what)) return values;
  return base::Annotate(values.status(), what);
}

}  // namespace

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
std::span<float> AtenBlock::Gradients() try { return rep_->Gradients(); } catch (const std::exception& error) {
  rep_->SetFailure(FromTorch(error, "gradients for the host"));
  return {};
}
std::vector<worker::DenseParameter> AtenBlock::Parameters() { return rep_->store().Parameters(); }
double AtenBlock::LossSum(int slot) const try { return rep_->LossSum(slot); } catch (const std::exception& error) {
  rep_->SetFailure(FromTorch(error, "the sum of losses"));
  return std::numeric_limits<double>::quiet_NaN();
}
int64_t AtenBlock::LossSamples(int slot) const { return rep_->step(slot).loss_samples; }

absl::Status AtenBlock::ReadValues(size_t parameter, DensePart part, size_t first, std::span<float> to) {
  return Caught("reading parameters", [&] { return rep_->store().Read(parameter, part, first, to); });
}
absl::Status AtenBlock::WriteValues(size_t parameter, DensePart part, size_t first, std::span<const float> from) {
  return Caught("writing parameters", [&] { return rep_->store().Write(parameter, part, first, from); });
}
absl::StatusOr<double> AtenBlock::SquaredNorm() {
  return Caught("the norm of gradients", [&] { return rep_->store().SquaredNorm(); });
}
absl::Status AtenBlock::ScaleGradients(float factor) {
  return Caught("clipping gradients", [&] { return rep_->store().ScaleGradients(factor); });
}
absl::Status AtenBlock::SumCopies(std::string_view name) {
  return Caught("adding shared gradients", [&] { return rep_->store().SumCopies(name); });
}
absl::Status AtenBlock::ApplyUpdate(const worker::Optimizer& optimizer) {
  MEDLEY_RETURN_IF_ERROR(rep_->failure());
  return Caught("the update of parameters", [&] { return rep_->store().ApplyUpdate(optimizer); });
}
absl::Status AtenBlock::KeepAgreed() {
  return Caught("keeping parameters for an undo", [&] { return rep_->store().KeepAgreed(); });
}
void AtenBlock::ForgetAgreed() { rep_->store().ForgetAgreed(); }
int64_t AtenBlock::AgreedStep() const { return rep_->store().agreed_step(); }
int64_t AtenBlock::AppliedStep() const { return rep_->store().applied_step(); }
int64_t AtenBlock::UndoLimit() const { return rep_->store().undo_limit(); }
absl::Status AtenBlock::UndoTo(int64_t step) {
  return Caught("undoing updates", [&] { return rep_->store().UndoTo(step); });
}
void AtenBlock::SetAppliedStep(int64_t step) { rep_->store().SetAppliedStep(step); }

}  // namespace medley::worker::aten
