// The losses of worker/model/losses.h and their gradients, computed where the outputs are: on a device, from which then
// only a number a step is copied.
#pragma once

#include <absl/status/statusor.h>

#include "worker/aten/place.h"
#include "worker/aten/torch.h"
#include "worker/data/batch.h"
#include "worker/model/graph.h"

namespace medley::worker::aten {

struct DeviceLoss {
  at::Tensor sum;       // of the samples: one double
  at::Tensor gradient;  // as the outputs
};

// What LossGradient returns and writes, but for the rounding of single operations. `outputs`: samples x floats,
// float32. `labels`: as many a sample as the loss takes. `weights`: of the samples, or undefined. `class_weights`:
// those of the loss in the place of the outputs, or undefined.
DeviceLoss LossOnDevice(const Operation& loss, const at::Tensor& outputs, const at::Tensor& labels, float scale,
                        const at::Tensor& weights, const at::Tensor& class_weights);

// What the loss takes of a batch, in the place of its outputs.
struct PlacedLabels {
  at::Tensor labels, weights;  // weights: undefined where samples have none
};

// Copies them, to where they were if they have the same sizes, and, where it is undefined, class_weights. Errors: those
// of Place.
absl::Status PlaceLabels(const Place& place, const Operation& loss, const BatchView& batch, PlacedLabels& labels,
                         at::Tensor& class_weights);

}  // namespace medley::worker::aten
