// The loss of a block on a device, where it is computed: only its sum is copied, once a step.
#include <limits>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/device_loss.h"

namespace medley::worker::aten {

void AtenBlock::Rep::ComputeLoss(Micro& micro, float scale) const {
  const at::AutoGradMode none(false);
  const cut::Crossing& crossing = *result_->crossing;
  const at::Tensor rows = at::detach(micro.result).movedim(crossing.axis, 0);
  const DeviceLoss found =
      LossOnDevice(operations_.back(), rows.reshape({micro.features.samples, crossing.floats}).to(at::kFloat),
                   micro.placed.labels.labels, scale, micro.placed.labels.weights, class_weights_);
  micro.result_gradient = found.gradient.view(rows.sizes()).movedim(0, crossing.axis).to(micro.result.scalar_type());
  micro.loss = found.sum;
}

absl::StatusOr<double> AtenBlock::Rep::LossSum(int slot) {
  OpenStep& open = open_.at(static_cast<size_t>(slot));
  if (!open.loss.defined()) return open.loss_sum;
  open.loss_sum = std::numeric_limits<double>::quiet_NaN();
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor host, place_.ToHost(std::exchange(open.loss, at::Tensor())));
  return open.loss_sum = host.item<double>();
}

}  // namespace medley::worker::aten
