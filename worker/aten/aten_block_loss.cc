// The loss of a block on a device, where it is computed: only its sum is copied, once a step.
#include <limits>
#include <utility>

#include "common/base/status.h"
#include "worker/aten/aten_block_rep.h"
#include "worker/aten/device_loss.h"

namespace medley::worker::aten {

absl::Status AtenBlock::Rep::AddLoss(OpenStep& open, Micro& micro) {
  const at::AutoGradMode none(false);
  const cut::Crossing& crossing = *result_->crossing;
  const int64_t samples = micro.features.samples;
  const at::Tensor rows = at::detach(micro.result).movedim(crossing.axis, 0);
  MEDLEY_ASSIGN_OR_RETURN(const DeviceLoss found, LossOfBatch(place_, operations_.back(),
                                                              rows.reshape({samples, crossing.floats}).to(at::kFloat),
                                                              micro.features, Scale(open.shape), class_weights_));
  micro.result_gradient = found.gradient.view(rows.sizes()).movedim(0, crossing.axis).to(micro.result.scalar_type());
  open.loss = open.loss.defined() ? open.loss + found.sum : found.sum;
  open.loss_samples += samples;
  return absl::OkStatus();
}

absl::StatusOr<double> AtenBlock::Rep::LossSum(int slot) {
  OpenStep& open = open_.at(static_cast<size_t>(slot));
  if (!open.loss.defined()) return open.loss_sum;
  open.loss_sum = std::numeric_limits<double>::quiet_NaN();
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor host, place_.ToHost(std::exchange(open.loss, at::Tensor())));
  return open.loss_sum = host.item<double>();
}

}  // namespace medley::worker::aten
