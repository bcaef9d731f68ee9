#include "worker/aten/placed_rows.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker::aten {

void PlacedRows::SetThere(const at::Tensor& rows, size_t floats) {
  floats_ = floats;
  changed_ = false;
  sums_ = at::Tensor();
  host_.Grow(floats_);
  std::ranges::fill(host_.First(floats_), 0.0F);
  rows_ = rows;
}

absl::Status PlacedRows::Set(const Place& place, std::span<const float> rows, int64_t columns) {
  const auto count = static_cast<int64_t>(rows.size()) / columns;
  SetThere(at::empty({count, columns}, place.Floats()), rows.size());
  if (rows.empty()) return absl::OkStatus();
  if (place.apart()) return place.CopyIn(rows, rows_);
  rows_.copy_(Over(rows, rows_.sizes()));
  return absl::OkStatus();
}

void PlacedRows::SetPlaced(const at::Tensor& rows) {
  floats_ = 0;
  changed_ = false;
  sums_ = at::Tensor();
  rows_ = rows;
}

at::Tensor PlacedRows::Gather(const at::Tensor& positions, bool training) const {
  const at::AutoGradMode none(false);
  TORCH_CHECK(rows_.defined(), "the step has no rows");
  return at::index_select(rows_, 0, positions).set_requires_grad(training);
}

void PlacedRows::AddGradients(const at::Tensor& positions, const at::Tensor& gradients) {
  const at::AutoGradMode none(false);
  if (!sums_.defined()) sums_ = at::zeros_like(rows_);
  sums_.index_add_(0, positions, gradients);
  changed_ = true;
}

absl::Status PlacedRows::GradientsToHost(const Place& place) {
  if (!changed_ || floats_ == 0) return absl::OkStatus();
  const std::span<float> to = host_.First(floats_);
  if (place.apart()) {
    MEDLEY_RETURN_IF_ERROR(place.CopyOut(sums_, to));
  } else {
    Over(to, sums_.sizes()).copy_(sums_);
  }
  changed_ = false;
  return absl::OkStatus();
}

}  // namespace medley::worker::aten
