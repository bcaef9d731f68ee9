#include "worker/aten/resident_update.h"

#include <limits>

#include "worker/params/update_kernels.h"

namespace medley::worker::aten {
namespace {

using at::Tensor;

// The loops of update_kernels.cc, operation by operation.

void Adagrad(UpdateTensors& t, const Tensor& g, Tensor root, const UpdateFactors& f) {
  at::addcmul_out(t.new_state[0], t.state[0], g, g);
  at::sqrt_out(root, t.new_state[0]).add_(f.epsilon);
  at::addcdiv_out(t.new_weights, t.weights, g, root, -f.rate);
}

void Adam(UpdateTensors& t, const Tensor& g, Tensor root, const UpdateFactors& f) {
  at::mul_out(t.new_state[0], t.state[0], at::scalar_tensor(f.keep1)).add_(g, f.add1);
  at::mul_out(t.new_state[1], t.state[1], at::scalar_tensor(f.keep2)).addcmul_(g, g, f.add2);
  at::sqrt_out(root, t.new_state[1]).mul_(f.scale).add_(f.epsilon);
  if (f.shrink == 1) {
    at::addcdiv_out(t.new_weights, t.weights, t.new_state[0], root, -f.rate);
  } else {
    at::mul_out(t.new_weights, t.weights, at::scalar_tensor(f.shrink)).addcdiv_(t.new_state[0], root, -f.rate);
  }
}

void Momentum(UpdateTensors& t, const Tensor& g, Tensor ahead, const UpdateFactors& f, bool nesterov) {
  at::mul_out(t.new_state[0], t.state[0], at::scalar_tensor(f.momentum)).add_(g);
  if (nesterov) at::add_out(ahead, g, t.new_state[0], f.momentum);
  at::add_out(t.new_weights, t.weights, nesterov ? ahead : t.new_state[0], -f.rate);
}

void Rmsprop(UpdateTensors& t, const Tensor& g, Tensor root, const UpdateFactors& f, bool momentum) {
  at::mul_out(t.new_state[0], t.state[0], at::scalar_tensor(f.keep)).addcmul_(g, g, f.add);
  at::sqrt_out(root, t.new_state[0]).add_(f.epsilon);
  if (!momentum) {
    at::addcdiv_out(t.new_weights, t.weights, g, root, -f.rate);
    return;
  }
  at::mul_out(t.new_state[1], t.state[1], at::scalar_tensor(f.momentum)).addcdiv_(g, root, 1);
  at::add_out(t.new_weights, t.weights, t.new_state[1], -f.rate);
}

void Ftrl(UpdateTensors& t, const Tensor& g, const UpdateFactors& f) {
  constexpr float kTiny = std::numeric_limits<float>::min();
  const Tensor &w = t.weights, &n = t.state[0], &linear = t.state[1];
  const Tensor sum = n.addcmul(g, g);
  const Tensor root = sum.sqrt();
  const Tensor begin = (w * (f.per_rate * f.beta + f.l2) + w.sign() * f.l1).neg();
  const Tensor before = at::where(n.gt(0), linear, begin);
  const Tensor z = before + g - g * g / (root + n.sqrt() + kTiny) * f.per_rate * w;
  const Tensor toward = z.sign().neg() * (z.abs() - f.l1).clamp_min(0);
  const Tensor used = sum.gt(0);
  const Tensor updated = toward / ((root + f.beta) * f.per_rate + f.l2 + kTiny);
  const Tensor new_linear = at::where(used, z, linear), new_weights = at::where(used, updated, w);
  t.new_state[0].copy_(sum);
  t.new_state[1].copy_(new_linear);
  t.new_weights.copy_(new_weights);
}

}  // namespace

void ApplyOnDevice(const Optimizer& optimizer, UpdateTensors tensors) {
  const UpdateFactors f = FactorsOf(optimizer);
  const int64_t size = tensors.weights.numel();
  Tensor other = tensors.scratch[1].narrow(0, 0, size);
  Tensor g = tensors.gradient;
  if (f.decay != 0) {
    g = tensors.scratch[0].narrow(0, 0, size);
    at::add_out(g, tensors.gradient, tensors.weights, f.decay);
  }
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      at::add_out(tensors.new_weights, tensors.weights, g, -f.rate);
      return;
    case OptimizerKind::kAdagrad:
      return Adagrad(tensors, g, other, f);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return Adam(tensors, g, other, f);
    case OptimizerKind::kMomentum:
      return Momentum(tensors, g, other, f, optimizer.nesterov);
    case OptimizerKind::kRmsprop:
      return Rmsprop(tensors, g, other, f, false);
    case OptimizerKind::kRmspropMomentum:
      return Rmsprop(tensors, g, other, f, true);
    case OptimizerKind::kFtrl:
      return Ftrl(tensors, g, f);
  }
}

}  // namespace medley::worker::aten
