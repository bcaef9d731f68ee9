#include "worker/aten/stored_block.h"

#include "common/base/status.h"
#include "worker/aten/caught.h"
#include "worker/aten/parameter_store.h"

namespace medley::worker::aten {

std::span<float> StoredBlock::Gradients() {
  const absl::StatusOr<std::span<float>> gradients =
      Caught("gradients for the host", [&] { return store().GradientsOnHost(); });
  failure_ = gradients.status();
  return gradients.ok() ? *gradients : std::span<float>();
}
std::vector<worker::DenseParameter> StoredBlock::Parameters() { return store().Parameters(); }

absl::Status StoredBlock::ReadValues(size_t parameter, DensePart part, size_t first, std::span<float> to) {
  return Caught("reading parameters", [&] { return store().Read(parameter, part, first, to); });
}
absl::Status StoredBlock::WriteValues(size_t parameter, DensePart part, size_t first, std::span<const float> from) {
  return Caught("writing parameters", [&] { return store().Write(parameter, part, first, from); });
}
absl::StatusOr<double> StoredBlock::SquaredNorm() {
  return Caught("the norm of gradients", [&] { return store().SquaredNorm(); });
}
absl::Status StoredBlock::ScaleGradients(float factor) {
  return Caught("clipping gradients", [&] { return store().ScaleGradients(factor); });
}
absl::Status StoredBlock::SumCopies(std::string_view name) {
  return Caught("adding shared gradients", [&] { return store().SumCopies(name); });
}
absl::Status StoredBlock::ApplyUpdate(const worker::Optimizer& optimizer) {
  MEDLEY_RETURN_IF_ERROR(failure_);
  return Caught("the update of parameters", [&] { return store().ApplyUpdate(optimizer); });
}
absl::Status StoredBlock::KeepAgreed() {
  return Caught("keeping parameters for an undo", [&] { return store().KeepAgreed(); });
}
void StoredBlock::ForgetAgreed() { store().ForgetAgreed(); }
int64_t StoredBlock::AgreedStep() const { return store().agreed_step(); }
int64_t StoredBlock::AppliedStep() const { return store().applied_step(); }
int64_t StoredBlock::UndoLimit() const { return store().undo_limit(); }
absl::Status StoredBlock::UndoTo(int64_t step) {
  return Caught("undoing updates", [&] { return store().UndoTo(step); });
}
void StoredBlock::SetAppliedStep(int64_t step) { store().SetAppliedStep(step); }

}  // namespace medley::worker::aten
