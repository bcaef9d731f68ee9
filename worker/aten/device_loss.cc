#include "worker/aten/device_loss.h"

#include <algorithm>
#include <iterator>

#include "common/base/status.h"
#include "worker/data/array_dataset.h"

namespace medley::worker::aten {
namespace {

using at::Tensor;

// Factors of samples by class, in the shape of `labels`; undefined: all are 1.
Tensor ByClass(const Tensor& class_weights, const Tensor& labels) {
  if (!class_weights.defined()) return {};
  const Tensor classes = labels.clamp_min(0).to(at::kLong).reshape({-1});
  return class_weights.index_select(0, classes).view(labels.sizes());
}

Tensor Times(const Tensor& values, const Tensor& factors) { return factors.defined() ? values * factors : values; }

// -log of the probability that sigmoid(logit) gives to the label, stable for any logit.
Tensor LogLosses(const Tensor& logits, const Tensor& labels) {
  return logits.clamp_min(0) - logits * labels + at::log1p(at::exp(logits.abs().neg()));
}

// Samples x tokens x classes, of which tokens without a label do not count.
DeviceLoss Softmax(const Tensor& outputs, const Tensor& labels, const Tensor& class_weights) {
  const int64_t samples = labels.size(0), tokens = labels.size(1), classes = outputs.size(1) / tokens;
  const Tensor logs = at::log_softmax(outputs.view({samples, tokens, classes}), 2);
  const Tensor wanted = labels.clamp_min(0).to(at::kLong).view({samples, tokens, 1});
  Tensor factors = ByClass(class_weights, labels);
  if (tokens > 1) {
    const Tensor labelled = labels.ne(kNoLabel).to(at::kFloat);
    const Tensor part = labelled / labelled.sum(1, true).clamp_min(1);
    factors = factors.defined() ? factors * part : part;
  }
  const Tensor losses = Times(logs.gather(2, wanted).view({samples, tokens}).neg(), factors);
  Tensor gradient = logs.exp();
  gradient.scatter_add_(2, wanted, at::full({samples, tokens, 1}, -1, gradient.options()));
  if (factors.defined()) gradient = gradient * factors.view({samples, tokens, 1});
  return {losses.sum(1), gradient.view(outputs.sizes())};
}

// Per sample.
DeviceLoss OfSamples(const Operation& loss, const Tensor& outputs, const Tensor& labels, const Tensor& class_weights) {
  const auto width = static_cast<double>(outputs.size(1));
  switch (loss.loss) {
    case LossKind::kLogistic: {
      Tensor wanted = labels, factors;
      if (loss.negatives > 0) {  // the first logit has the sample's label, those of drawn rows have 0
        wanted = at::zeros_like(outputs);
        wanted.narrow(1, 0, 1).copy_(labels);
        factors = ByClass(class_weights, wanted);
      } else {
        factors = ByClass(class_weights, labels.narrow(1, 0, 1));
      }
      const double part = loss.negatives > 0 ? 1 : 1 / width;
      return {Times(LogLosses(outputs, wanted), factors).sum(1) * part,
              Times(at::sigmoid(outputs) - wanted, factors) * part};
    }
    case LossKind::kSquared: {
      const Tensor errors = outputs - labels;
      return {(errors * errors).sum(1) / width, errors * (2 / width)};
    }
    case LossKind::kAbsolute: {
      const Tensor errors = outputs - labels;
      return {errors.abs().sum(1) / width, errors.sign() / width};
    }
    case LossKind::kSoftmax:
      return Softmax(outputs, labels, class_weights);
    case LossKind::kOutput:
      return {outputs.select(1, 0), at::ones_like(outputs)};
  }
  return {};
}

}  // namespace

DeviceLoss LossOnDevice(const Operation& loss, const Tensor& outputs, const Tensor& labels, float scale,
                        const Tensor& weights, const Tensor& class_weights) {
  const at::AutoGradMode none(false);
  DeviceLoss out = OfSamples(loss, outputs, labels, class_weights);
  if (weights.defined()) {
    out.sum = out.sum * weights;
    out.gradient = out.gradient * weights.view({-1, 1});
  }
  return {out.sum.sum(at::kDouble), out.gradient * scale};
}

absl::Status PlaceLabels(const Place& place, const Operation& loss, const BatchView& batch, PlacedLabels& labels,
                         Tensor& class_weights) {
  const int64_t samples = batch.samples;
  const auto to_place = [&](std::span<const float> values, at::IntArrayRef sizes, Tensor& placed) -> absl::Status {
    if (!values.empty()) return place.Renew(Over(values, sizes), placed);
    placed = Tensor();
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(to_place(batch.labels, {samples, std::ssize(batch.labels) / samples}, labels.labels));
  MEDLEY_RETURN_IF_ERROR(to_place(batch.weights, {samples}, labels.weights));
  if (class_weights.defined()) return absl::OkStatus();
  return to_place(loss.class_weights, {std::ssize(loss.class_weights)}, class_weights);
}

}  // namespace medley::worker::aten
