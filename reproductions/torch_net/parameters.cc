#include "reproductions/torch_net/parameters.h"

#include <cmath>
#include <utility>

#include "common/base/status.h"

namespace medley::reproductions::torch_net {

at::Tensor Parameters::Matrix(int64_t rows, int64_t columns) {
  at::Tensor values = at::empty({rows, columns}, at::kFloat);
  const double bound = std::sqrt(6.0 / static_cast<double>(rows + columns));
  auto* at = values.data_ptr<float>();
  for (int64_t i = 0; i < rows * columns; ++i) at[i] = static_cast<float>(rng_.Uniform(-bound, bound));
  return Add(std::move(values));
}

at::Tensor Parameters::Add(at::Tensor values) {
  values.set_requires_grad(true);
  values_.push_back(values);
  first_.push_back(at::zeros_like(values));
  second_.push_back(at::zeros_like(values));
  return values;
}

void Parameters::AddGradient(const at::Tensor& loss) { torch::autograd::backward({loss}); }

void Parameters::Step(double rate, double clip) {
  constexpr double kFirst = 0.9, kSecond = 0.999, kLeast = 1e-8;
  at::NoGradGuard guard;
  double squares = 0;
  for (const at::Tensor& value : values_) {
    if (value.grad().defined()) squares += at::sum(value.grad() * value.grad()).item<double>();
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) {
    for (at::Tensor& value : values_) value.mutable_grad() = at::Tensor();
    return;
  }
  const double scale = norm > clip ? clip / norm : 1;
  ++steps_;
  const double first_part = 1 - std::pow(kFirst, steps_), second_part = 1 - std::pow(kSecond, steps_);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].grad().defined()) continue;
    const at::Tensor gradient = values_[i].grad() * scale;
    first_[i].mul_(kFirst).add_(gradient, 1 - kFirst);
    second_[i].mul_(kSecond).addcmul_(gradient, gradient, 1 - kSecond);
    values_[i].addcdiv_(first_[i] / first_part, at::sqrt(second_[i] / second_part).add_(kLeast), -rate);
    values_[i].mutable_grad() = at::Tensor();
  }
}

std::string Parameters::Save(std::string_view version) const {
  std::vector<c10::IValue> parts = {c10::IValue(std::string(version))};
  for (const at::Tensor& value : values_) parts.emplace_back(at::detach(value));
  const std::vector<char> bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(parts)));
  return {bytes.begin(), bytes.end()};
}

absl::Status Parameters::Load(std::string_view bytes, std::string_view version) {
  c10::IValue loaded;
  try {
    loaded = torch::jit::pickle_load({bytes.begin(), bytes.end()});
  } catch (const std::exception& error) {
    return base::InvalidArgument("these bytes are no weights: {}",
                                 std::string_view(error.what()).substr(0, std::string_view(error.what()).find('\n')));
  }
  if (!loaded.isTuple() || loaded.toTupleRef().elements().empty() || !loaded.toTupleRef().elements()[0].isString()) {
    return base::InvalidArgument("these bytes are no weights of a planner");
  }
  const auto& parts = loaded.toTupleRef().elements();
  if (parts[0].toStringRef() != version) {
    return base::InvalidArgument("the weights are of version '{}', this program has version '{}'",
                                 parts[0].toStringRef(), version);
  }
  if (parts.size() != values_.size() + 1) {
    return base::InvalidArgument("the weights have {} parts, these networks have {}", parts.size() - 1, values_.size());
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    const c10::IValue& part = parts[i + 1];
    const bool alike =
        part.isTensor() && part.toTensor().sizes() == values_[i].sizes() && part.toTensor().scalar_type() == at::kFloat;
    if (!alike) return base::InvalidArgument("the weights are of networks of another size: part {}", i);
  }
  at::NoGradGuard guard;
  for (size_t i = 0; i < values_.size(); ++i) values_[i].copy_(parts[i + 1].toTensor());
  return absl::OkStatus();
}

at::Tensor ToTensor(const std::vector<float>& values, at::IntArrayRef shape) {
  return at::tensor(at::ArrayRef<float>(values), at::kFloat).reshape(shape);
}
at::Tensor ToIndex(const std::vector<int64_t>& values, at::IntArrayRef shape) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong).reshape(shape);
}

}  // namespace medley::reproductions::torch_net
