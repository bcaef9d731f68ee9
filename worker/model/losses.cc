#include "worker/model/losses.h"

#include <algorithm>
#include <cmath>

#include "worker/data/array_dataset.h"
#include "worker/scores/losses.h"

namespace medley::worker {
namespace {

using Floats = std::span<const float>;

float Sigmoid(float logit) {
  // The argument of exp is never positive, so it does not overflow.
  const float e = std::exp(-std::abs(logit));
  return logit >= 0 ? 1 / (1 + e) : e / (1 + e);
}

float WeightOf(const std::vector<float>& weights, float label) {
  return weights.empty() ? 1 : weights[static_cast<size_t>(label)];
}

double Logistic(Floats logits, Floats labels, const std::vector<float>& weights, float scale, float* gradient) {
  const float weight = WeightOf(weights, labels[0]) / static_cast<float>(logits.size());
  double loss = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    loss += LogLoss(logits[i], labels[i]);
    gradient[i] = (Sigmoid(logits[i]) - labels[i]) * weight * scale;
  }
  return loss * static_cast<double>(weight);
}

double Softmax(Floats logits, float label, const std::vector<float>& weights, float scale, float* gradient) {
  const float weight = WeightOf(weights, label);
  const auto number = static_cast<size_t>(label);
  const double all = LogSumExp(logits);
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto probability = static_cast<float>(std::exp(static_cast<double>(logits[i]) - all));
    gradient[i] = (probability - (i == number ? 1.0F : 0.0F)) * weight * scale;
  }
  return (all - static_cast<double>(logits[number])) * static_cast<double>(weight);
}

// For several tokens, each with its classes: the mean over those that have a label.
double SoftmaxOfTokens(Floats logits, Floats labels, const std::vector<float>& weights, float scale, float* gradient) {
  const size_t classes = logits.size() / labels.size();
  const auto labelled = std::ranges::count_if(labels, [](float label) { return label != kNoLabel; });
  const float part = 1 / static_cast<float>(std::max<std::ptrdiff_t>(1, labelled));
  double loss = 0;
  for (size_t t = 0; t < labels.size(); ++t) {
    float* const mine = gradient + t * classes;
    if (labels[t] == kNoLabel) {
      std::fill_n(mine, classes, 0.0F);
    } else {
      loss += Softmax(logits.subspan(t * classes, classes), labels[t], weights, scale * part, mine);
    }
  }
  return loss * static_cast<double>(part);
}

// The first logit has the sample's label, those of drawn rows have 0. The sum: each drawn row is an observation.
double Contrastive(Floats logits, float label, const std::vector<float>& weights, float scale, float* gradient) {
  double loss = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float wanted = i == 0 ? label : 0;
    const float weight = WeightOf(weights, wanted);
    loss += LogLoss(logits[i], wanted) * static_cast<double>(weight);
    gradient[i] = (Sigmoid(logits[i]) - wanted) * weight * scale;
  }
  return loss;
}

double Squared(Floats outputs, Floats labels, float scale, float* gradient) {
  const float part = 1 / static_cast<float>(outputs.size());
  double loss = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const float error = outputs[i] - labels[i];
    gradient[i] = 2 * error * scale * part;
    loss += static_cast<double>(error) * static_cast<double>(error);
  }
  return loss / static_cast<double>(outputs.size());
}

double Absolute(Floats outputs, Floats labels, float scale, float* gradient) {
  const float part = 1 / static_cast<float>(outputs.size());
  double loss = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const float error = outputs[i] - labels[i];
    gradient[i] = error == 0 ? 0 : std::copysign(scale * part, error);
    loss += static_cast<double>(std::abs(error));
  }
  return loss / static_cast<double>(outputs.size());
}

}  // namespace

double LossGradient(const Operation& loss, Matrix outputs, std::span<const float> labels, float step_scale,
                    MutableMatrix doutputs, std::span<const float> weights) {
  const auto width = static_cast<size_t>(outputs.columns);
  const bool single = loss.loss == LossKind::kSoftmax || loss.loss == LossKind::kOutput || loss.negatives > 0;
  const size_t several = outputs.rows > 0 ? labels.size() / static_cast<size_t>(outputs.rows) : 1;  // of tokens
  const size_t per_sample = loss.loss == LossKind::kSoftmax ? several : single ? 1 : width;
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(outputs.rows); ++i) {
    const Floats output(outputs.data + i * width, width);
    const Floats label = labels.subspan(i * per_sample, per_sample);
    float* const gradient = doutputs.data + i * width;
    const float weight = weights.empty() ? 1 : weights[i];
    const float scale = step_scale * weight;
    double mine = 0;
    switch (loss.loss) {
      case LossKind::kLogistic:
        mine = loss.negatives > 0 ? Contrastive(output, label[0], loss.class_weights, scale, gradient)
                                  : Logistic(output, label, loss.class_weights, scale, gradient);
        break;
      case LossKind::kSquared:
        mine = Squared(output, label, scale, gradient);
        break;
      case LossKind::kAbsolute:
        mine = Absolute(output, label, scale, gradient);
        break;
      case LossKind::kSoftmax:
        mine = per_sample > 1 ? SoftmaxOfTokens(output, label, loss.class_weights, scale, gradient)
                              : Softmax(output, label[0], loss.class_weights, scale, gradient);
        break;
      case LossKind::kOutput:
        mine = static_cast<double>(output[0]);
        gradient[0] = scale;
        break;
    }
    sum += mine * static_cast<double>(weight);
  }
  return sum;
}

}  // namespace medley::worker
