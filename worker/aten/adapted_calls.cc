#include "worker/aten/adapted_calls.h"

#include <cmath>
#include <map>
#include <string>

#include "worker/aten/device_mask.h"
#include "worker/model/random.h"

namespace medley::worker::aten {
namespace {

using at::Tensor;

c10::optional<Tensor> OptionalTensor(const c10::IValue& value) {
  return value.isNone() ? c10::optional<Tensor>() : c10::optional<Tensor>(value.toTensor());
}

// Ones and zeros, scaled, in the shape of `like`, whose batch lies along `axis` (< 0: it has none, so all samples share
// the mask of the first).
Tensor MaskFor(const RunContext& context, int call, const Tensor& like, int axis, double dropped) {
  const Tensor moved = axis > 0 ? like.movedim(axis, 0) : like;
  const int64_t rows = axis < 0 ? 1 : context.samples;
  const int64_t each = rows == 0 ? 0 : moved.numel() / rows;
  worker::Draw draw{.seed = context.seed, .call = call, .step = context.step, .sample = 0};
  if (axis >= 0) draw.sample = context.first_sample;
  Tensor mask;
  if (like.device().is_cpu()) {
    mask = at::empty(moved.sizes(), at::TensorOptions().dtype(at::kFloat));
    for (int64_t row = 0; row < rows; ++row, ++draw.sample) {
      worker::DropoutMask(draw, 1 - dropped, {mask.data_ptr<float>() + row * each, static_cast<size_t>(each)});
    }
  } else {
    const DrawCounters* const counters = context.counters;
    mask =
        MasksOnDevice(draw, 1 - dropped, rows, each, like.options(), counters == nullptr ? Tensor() : counters->step(),
                      counters == nullptr || axis < 0 ? Tensor() : counters->first_sample())
            .reshape(moved.sizes());
  }
  if (axis > 0) mask = mask.movedim(0, axis);
  return mask.to(like.device(), like.scalar_type());
}

void Dropout(const RunContext& context, int call, int axis, Stack& stack) {
  const Tensor input = stack[0].toTensor();
  const double dropped = stack[1].toDouble();
  Tensor result = input;
  if (context.training && dropped >= 1) {
    result = at::zeros_like(input);
  } else if (context.training && dropped > 0) {
    result = input * MaskFor(context, call, input, axis, dropped);
  }
  stack = {result};
}

void DropoutInPlace(const RunContext& context, int call, int axis, Stack& stack) {
  Tensor input = stack[0].toTensor();
  Dropout(context, call, axis, stack);
  if (const Tensor result = stack[0].toTensor(); !result.is_same(input)) input.copy_(result);
  stack = {input};
}

// Drops whole channels of a sample.
void FeatureDropout(const RunContext& context, int call, int axis, Stack& stack) {
  const Tensor input = stack[0].toTensor();
  const double dropped = stack[1].toDouble();
  if (!context.training || dropped <= 0) {
    stack = {input};
    return;
  }
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  for (size_t i = 0; i < 2 && i < sizes.size(); ++i) sizes[i] = input.size(static_cast<int64_t>(i));
  const Tensor shape = at::empty(sizes, input.options().requires_grad(false));
  stack = {input * MaskFor(context, call, shape, axis, dropped)};
}

void NativeDropout(const RunContext& context, int call, int axis, Stack& stack) {
  const Tensor input = stack[0].toTensor();
  const double dropped = stack[1].toDouble();
  const bool drops = context.training && dropped > 0 && dropped < 1;
  const Tensor mask = drops ? MaskFor(context, call, input, axis, dropped) : at::ones_like(input);
  stack = {input * mask, mask.ne(0)};
}

// The statistics of `mean` and `variance` change in place when training.
std::tuple<Tensor, Tensor, Tensor> Normalise(const RunContext& context, const Stack& stack, double momentum,
                                             double epsilon) {
  const Tensor mean = stack[3].toTensor(), variance = stack[4].toTensor();
  return at::native_batch_norm(stack[0].toTensor(), OptionalTensor(stack[1]), OptionalTensor(stack[2]), mean, variance,
                               context.training, momentum, epsilon);
}

void BatchNorm(const RunContext& context, int, int, Stack& stack) {
  if (stack[3].isNone() || stack[4].isNone()) {  // without running statistics the batch decides, always
    stack = {at::batch_norm(stack[0].toTensor(), OptionalTensor(stack[1]), OptionalTensor(stack[2]), {}, {}, true,
                            stack[6].toDouble(), stack[7].toDouble(), false)};
    return;
  }
  stack = {at::batch_norm(stack[0].toTensor(), OptionalTensor(stack[1]), OptionalTensor(stack[2]), stack[3].toTensor(),
                          stack[4].toTensor(), context.training, stack[6].toDouble(), stack[7].toDouble(), false)};
}

// Also returns the new statistics.
void BatchNormFunctional(const RunContext& context, int, int, Stack& stack) {
  auto [result, mean, deviation] = Normalise(context, stack, stack[6].toDouble(), stack[7].toDouble());
  stack = {result, mean, deviation, stack[3], stack[4]};
}

void BatchNormLegit(const RunContext& context, int, int, Stack& stack) {
  auto [result, mean, deviation] = Normalise(context, stack, stack[6].toDouble(), stack[7].toDouble());
  stack = {result, mean, deviation};
}

void BatchNormNoTraining(const RunContext& context, int, int, Stack& stack) {
  auto [result, mean, deviation] = Normalise(context, stack, stack[5].toDouble(), stack[6].toDouble());
  stack = {result, mean, deviation};
}

// softmax(q k^T scale + mask) v, as PyTorch documents it.
void Attention(const RunContext& context, int call, int axis, Stack& stack) {
  const Tensor query = stack[0].toTensor();
  Tensor key = stack[1].toTensor(), value = stack[2].toTensor();
  const double dropped = stack[4].toDouble();
  const double scale =
      stack[6].isNone() ? 1 / std::sqrt(static_cast<double>(query.size(-1))) : stack[6].toScalar().toDouble();
  if (stack[7].toBool()) {  // grouped queries: heads share keys
    key = key.repeat_interleave(query.size(-3) / key.size(-3), -3);
    value = value.repeat_interleave(query.size(-3) / value.size(-3), -3);
  }
  Tensor scores = at::matmul(query * scale, key.transpose(-2, -1)).to(query.scalar_type());  // also in bfloat16
  if (stack[5].toBool()) {
    const Tensor allowed = at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(allowed.logical_not(), -INFINITY);
  }
  if (const auto mask = OptionalTensor(stack[3]); mask.has_value()) {
    scores = mask->scalar_type() == at::kBool ? scores.masked_fill(mask->logical_not(), -INFINITY) : scores + *mask;
  }
  Tensor weights = at::softmax(scores, -1);
  if (context.training && dropped > 0) weights = weights * MaskFor(context, call, weights, axis, dropped);
  stack = {at::matmul(weights, value)};
}

struct RecurrentSettings {
  bool biases = true;
  int64_t count = 1;  // layers
  bool training = false;
  bool both = false;  // directions
  bool batch_first = false;
};

std::vector<Tensor> Lstm(const Tensor& x, const std::vector<Tensor>& states, const std::vector<Tensor>& weights,
                         const RecurrentSettings& s) {
  auto [output, hidden, cell] = at::lstm(x, states, weights, s.biases, s.count, 0, s.training, s.both, s.batch_first);
  return {output, hidden, cell};
}
std::vector<Tensor> Gru(const Tensor& x, const std::vector<Tensor>& states, const std::vector<Tensor>& weights,
                        const RecurrentSettings& s) {
  auto [output, hidden] = at::gru(x, states[0], weights, s.biases, s.count, 0, s.training, s.both, s.batch_first);
  return {output, hidden};
}
std::vector<Tensor> RnnTanh(const Tensor& x, const std::vector<Tensor>& states, const std::vector<Tensor>& weights,
                            const RecurrentSettings& s) {
  auto [output, hidden] = at::rnn_tanh(x, states[0], weights, s.biases, s.count, 0, s.training, s.both, s.batch_first);
  return {output, hidden};
}
std::vector<Tensor> RnnRelu(const Tensor& x, const std::vector<Tensor>& states, const std::vector<Tensor>& weights,
                            const RecurrentSettings& s) {
  auto [output, hidden] = at::rnn_relu(x, states[0], weights, s.biases, s.count, 0, s.training, s.both, s.batch_first);
  return {output, hidden};
}

// Layers of an LSTM, a GRU or an RNN, between which values are dropped: a layer after the other, so that their masks
// are those of Dropout, and none in an evaluation. `kLayers` computes the layers that it is given: (output, states...).
template <auto kLayers>
void Recurrent(const RunContext& context, int call, int axis, Stack& stack) {
  constexpr int kCallsBetween = 1 << 20;  // the masks of two layers are as those of two calls
  Tensor x = stack[0].toTensor();
  const bool listed = stack[1].isList();
  const std::vector<Tensor> states = listed ? stack[1].toTensorVector() : std::vector<Tensor>{stack[1].toTensor()};
  const std::vector<Tensor> weights = stack[2].toTensorVector();
  const int64_t layers = stack[4].toInt(), directions = stack[7].toBool() ? 2 : 1;
  const double dropped = stack[5].toDouble();
  const int64_t at_once = context.training && dropped > 0 ? 1 : layers;
  const int64_t each = std::ssize(weights) / layers;
  std::vector<std::vector<Tensor>> found(states.size());
  for (int64_t layer = 0; layer < layers; layer += at_once) {
    std::vector<Tensor> begin;
    for (const Tensor& state : states) begin.push_back(state.narrow(0, layer * directions, at_once * directions));
    const auto first = weights.begin() + layer * each;
    std::vector<Tensor> results = kLayers(x, begin, std::vector<Tensor>(first, first + at_once * each),
                                          {.biases = stack[3].toBool(),
                                           .count = at_once,
                                           .training = context.training,
                                           .both = stack[7].toBool(),
                                           .batch_first = stack[8].toBool()});
    x = results[0];
    for (size_t i = 0; i < found.size(); ++i) found[i].push_back(results[i + 1]);
    if (layer + at_once >= layers) break;
    x = dropped >= 1 ? at::zeros_like(x)
                     : x * MaskFor(context, call + kCallsBetween * static_cast<int>(layer + 1), x, axis, dropped);
  }
  stack = {x};
  for (const std::vector<Tensor>& parts : found) stack.push_back(parts.size() == 1 ? parts[0] : at::cat(parts, 0));
}

void RmsNorm(const RunContext&, int, int, Stack& stack) {
  const Tensor input = stack[0].toTensor();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < stack[1].toIntVector().size(); ++i) axes.push_back(-1 - static_cast<int64_t>(i));
  const double epsilon = stack[3].isNone() ? 1.1920928955078125e-07 : stack[3].toDouble();
  Tensor result = input * at::rsqrt(input.pow(2).mean(axes, true) + epsilon);
  if (const auto weight = OptionalTensor(stack[2]); weight.has_value()) result = result * *weight;
  stack = {result};
}

// For tensors whose strides differ from those in the PyTorch that exported the model, a view may have to be a copy.
void View(const RunContext&, int, int, Stack& stack) { stack = {stack[0].toTensor().reshape(stack[1].toIntVector())}; }

using Names = std::vector<std::string_view>;

}  // namespace

const AdaptedCall* FindAdapted(std::string_view target, bool known) {
  constexpr std::string_view kAten = "aten.";
  if (!target.starts_with(kAten)) return nullptr;
  const std::string_view call = target.substr(kAten.size());
  static const Names kNorm = {"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"};
  static const Names kNormNoTraining = {"input", "weight", "bias", "running_mean", "running_var", "momentum", "eps"};
  static const Names kRecurrent = {"input",   "hx",    "params",        "has_biases", "num_layers",
                                   "dropout", "train", "bidirectional", "batch_first"};
  static const std::map<std::string_view, AdaptedCall> kAlways = {
      {"dropout.default", {{"input", "p", "train"}, {}, Dropout}},
      {"dropout_.default", {{"self", "p", "train"}, {}, DropoutInPlace}},
      {"feature_dropout.default", {{"input", "p", "train"}, {}, FeatureDropout}},
      {"native_dropout.default", {{"input", "p", "train"}, {}, NativeDropout}},
      {"batch_norm.default",
       {{"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps", "cudnn_enabled"},
        {},
        BatchNorm}},
      {"_native_batch_norm_legit_functional.default", {kNorm, {}, BatchNormFunctional}},
      {"_native_batch_norm_legit.default", {kNorm, {}, BatchNormLegit}},
      {"_native_batch_norm_legit_no_training.default", {kNormNoTraining, {}, BatchNormNoTraining}},
      {"native_batch_norm.default", {kNorm, {}, BatchNormLegit}},
      {"lstm.input", {kRecurrent, {}, Recurrent<Lstm>}},
      {"gru.input", {kRecurrent, {}, Recurrent<Gru>}},
      {"rnn_tanh.input", {kRecurrent, {}, Recurrent<RnnTanh>}},
      {"rnn_relu.input", {kRecurrent, {}, Recurrent<RnnRelu>}},
      {"view.default", {{"self", "size"}, {}, View}},
      {"scaled_dot_product_attention.default",
       {{"query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"},
        {c10::IValue(), 0.0, false, c10::IValue(), false},
        Attention}},
  };
  static const std::map<std::string_view, AdaptedCall> kMissing = {
      {"rms_norm.default", {{"input", "normalized_shape", "weight", "eps"}, {c10::IValue(), c10::IValue()}, RmsNorm}},
  };
  if (const auto found = kAlways.find(call); found != kAlways.end()) return &found->second;
  if (known) return nullptr;
  const auto found = kMissing.find(call);
  return found == kMissing.end() ? nullptr : &found->second;
}

}  // namespace medley::worker::aten
