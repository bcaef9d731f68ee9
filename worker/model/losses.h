// The losses of a batch and their gradients. Pure functions; the numbers of one sample are in worker/scores/losses.h.
#pragma once

#include <span>

#include "worker/model/graph.h"
#include "worker/model/kernels.h"

namespace medley::worker {

// Returns the sum of the samples' losses and sets doutputs to `scale` times its gradient.
//
//   kLogistic  mean over the outputs of the sigmoid cross-entropy; as many labels as outputs
//              with loss.negatives: their sum, where only the first output has the label of the sample, the others 0
//   kSquared   mean of the squared differences;  kAbsolute  of the absolute ones; as many labels as outputs
//   kSoftmax   cross-entropy; the label is the number of the class
//   kOutput    the output; one output, labels are ignored
//
// The loss of a sample is multiplied by its weight, one of `weights` or 1, and by the weight of its class:
// class_weights[label] of kSoftmax and of kLogistic with one output. Empty: 1.
double LossGradient(const Operation& loss, Matrix outputs, std::span<const float> labels, float scale,
                    MutableMatrix doutputs, std::span<const float> weights = {});

}  // namespace medley::worker
