// The losses of single samples, stable for any logit. Pure functions.
#pragma once

#include <span>

namespace medley::worker {

// -log of the probability that sigmoid(logit) gives to `label`, 0 or 1.
double LogLoss(float logit, float label);
// log of the sum of exp(logit), so that -log of the probability of class i by softmax is LogSumExp(logits) - logits[i].
// `logits` is not empty.
double LogSumExp(std::span<const float> logits);

}  // namespace medley::worker
