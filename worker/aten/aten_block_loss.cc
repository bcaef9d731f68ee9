// The loss of a block on a device, where it is computed: only its sum is copied, once a step.
#include <limits>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/device_loss.h"

namespace medley::worker::aten {

absl::Status AtenBlock::Rep::AddLoss(OpenStep& open, Micro& micro) {
  const at::AutoGradMode none(false);
  const worker::Operation& loss = operations_.back();
  const cut::Crossing& crossing = *result_->crossing;
  const BatchView& batch = micro.features;
  const int64_t samples = batch.samples;
  const auto to_place = [&](std::span<const float> values, at::IntArrayRef sizes) -> absl::StatusOr<at::Tensor> {
    if (values.empty()) return at::Tensor();
    return place_.ToPlace(Over(values, sizes));
  };
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor labels,
                          to_place(batch.labels, {samples, std::ssize(batch.labels) / samples}));
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor weights, to_place(batch.weights, {samples}));
  if (!class_weights_.defined()) {
    MEDLEY_ASSIGN_OR_RETURN(class_weights_, to_place(loss.class_weights, {std::ssize(loss.class_weights)}));
  }
  const at::Tensor rows = at::detach(micro.result).movedim(crossing.axis, 0);
  const DeviceLoss found = LossOnDevice(loss, rows.reshape({samples, crossing.floats}).to(at::kFloat), labels,
                                        Scale(open.shape), weights, class_weights_);
  micro.result_gradient = found.gradient.view(rows.sizes()).movedim(0, crossing.axis).to(micro.result.scalar_type());
  open.loss = open.loss.defined() ? open.loss + found.sum : found.sum;
  open.loss_samples += samples;
  return absl::OkStatus();
}

double AtenBlock::Rep::LossSum(int slot) {
  OpenStep& open = open_.at(static_cast<size_t>(slot));
  if (!open.loss.defined()) return open.loss_sum;
  const absl::StatusOr<at::Tensor> host = place_.ToHost(std::exchange(open.loss, at::Tensor()));
  if (!host.ok()) failure_ = host.status();
  open.loss_sum = host.ok() ? host->item<double>() : std::numeric_limits<double>::quiet_NaN();
  return open.loss_sum;
}

}  // namespace medley::worker::aten
