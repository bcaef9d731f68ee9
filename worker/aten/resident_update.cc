#include "worker/aten/resident_update.h"

#include <bit>
#include <limits>

#include "worker/params/update_kernels.h"

namespace medley::worker::aten {
namespace {

using at::Tensor;

// The loops of update_kernels.cc, operation by operation. Products with a factor in the device's memory are of the last
// operation, so they cost no pass over the memory.

void Step(UpdateTensors& t, const Tensor& by) { at::addcmul_out(t.new_weights, t.weights, by, t.factors->rate, -1); }

void Adagrad(UpdateTensors& t, const Tensor& g, Tensor root, const UpdateFactors& f) {
  at::addcmul_out(t.new_state[0], t.state[0], g, g);
  at::sqrt_out(root, t.new_state[0]).add_(f.epsilon);
  Step(t, at::div_out(root, g, root));
}

void Adam(UpdateTensors& t, const Tensor& g, Tensor root, const UpdateFactors& f, bool shrinks) {
  at::mul_out(t.new_state[0], t.state[0], at::scalar_tensor(f.keep1)).add_(g, f.add1);
  at::mul_out(t.new_state[1], t.state[1], at::scalar_tensor(f.keep2)).addcmul_(g, g, f.add2);
  at::sqrt_out(root, t.new_state[1]).mul_(t.factors->scale).add_(f.epsilon);
  at::div_out(root, t.new_state[0], root);
  if (!shrinks) return Step(t, root);
  at::mul_out(t.new_weights, t.weights, t.factors->shrink).addcmul_(root, t.factors->rate, -1);
}

void Momentum(UpdateTensors& t, const Tensor& g, Tensor ahead, const UpdateFactors& f, bool nesterov) {
  at::mul_out(t.new_state[0], t.state[0], at::scalar_tensor(f.momentum)).add_(g);
  if (nesterov) at::add_out(ahead, g, t.new_state[0], f.momentum);
  Step(t, nesterov ? ahead : t.new_state[0]);
}

void Rmsprop(UpdateTensors& t, const Tensor& g, Tensor root, const UpdateFactors& f, bool momentum) {
  at::mul_out(t.new_state[0], t.state[0], at::scalar_tensor(f.keep)).addcmul_(g, g, f.add);
  at::sqrt_out(root, t.new_state[0]).add_(f.epsilon);
  if (!momentum) return Step(t, at::div_out(root, g, root));
  at::mul_out(t.new_state[1], t.state[1], at::scalar_tensor(f.momentum)).addcdiv_(g, root, 1);
  Step(t, t.new_state[1]);
}

void Ftrl(UpdateTensors& t, const Tensor& g, const UpdateFactors& f) {
  constexpr float kTiny = std::numeric_limits<float>::min();
  const Tensor &w = t.weights, &n = t.state[0], &linear = t.state[1], &per_rate = t.factors->per_rate;
  const Tensor sum = n.addcmul(g, g);
  const Tensor root = sum.sqrt();
  const Tensor begin = (w * (per_rate * f.beta + f.l2) + w.sign() * f.l1).neg();
  const Tensor before = at::where(n.gt(0), linear, begin);
  const Tensor z = before + g - g * g / (root + n.sqrt() + kTiny) * per_rate * w;
  const Tensor toward = z.sign().neg() * (z.abs() - f.l1).clamp_min(0);
  const Tensor used = sum.gt(0);
  const Tensor updated = toward / ((root + f.beta) * per_rate + f.l2 + kTiny);
  const Tensor new_linear = at::where(used, z, linear), new_weights = at::where(used, updated, w);
  t.new_state[0].copy_(sum);
  t.new_state[1].copy_(new_linear);
  t.new_weights.copy_(new_weights);
}

}  // namespace

void ChangingFactors::Set(const Optimizer& optimizer, const at::TensorOptions& place) {
  const at::AutoGradMode none(false);
  const UpdateFactors f = FactorsOf(optimizer);
  const std::array<float, 4> values = {f.rate, f.scale, f.shrink, f.per_rate};
  const std::array<Tensor*, 4> tensors = {&rate, &scale, &shrink, &per_rate};
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensors[i]->defined() && set_[i] == values[i]) continue;
    if (!tensors[i]->defined()) *tensors[i] = at::empty({}, place);
    tensors[i]->fill_(values[i]);
    set_[i] = values[i];
  }
}

std::vector<uint64_t> FixedFactorsOf(const Optimizer& optimizer) {
  const UpdateFactors f = FactorsOf(optimizer);
  std::vector<uint64_t> fixed = {static_cast<uint64_t>(optimizer.kind), optimizer.nesterov ? 1U : 0U,
                                 optimizer.weight_decay != 0 ? 1U : 0U};
  for (const float factor :
       {f.keep1, f.add1, f.keep2, f.add2, f.epsilon, f.decay, f.momentum, f.keep, f.add, f.l1, f.l2, f.beta}) {
    fixed.push_back(std::bit_cast<uint32_t>(factor));
  }
  return fixed;
}

void ApplyOnDevice(const Optimizer& optimizer, UpdateTensors tensors) {
  const UpdateFactors f = FactorsOf(optimizer);
  const int64_t size = tensors.weights.numel();
  ChangingFactors own;
  if (tensors.factors == nullptr) {
    own.Set(optimizer, tensors.weights.options());
    tensors.factors = &own;
  }
  Tensor other = tensors.scratch[1].narrow(0, 0, size);
  Tensor g = tensors.gradient;
  if (f.decay != 0) {
    g = tensors.scratch[0].narrow(0, 0, size);
    at::add_out(g, tensors.gradient, tensors.weights, f.decay);
  }
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return Step(tensors, g);
    case OptimizerKind::kAdagrad:
      return Adagrad(tensors, g, other, f);
    case OptimizerKind::kAdam:
      return Adam(tensors, g, other, f, false);
    case OptimizerKind::kAdamW:
      return Adam(tensors, g, other, f, optimizer.weight_decay != 0);
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
