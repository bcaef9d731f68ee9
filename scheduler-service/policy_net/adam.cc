#include "scheduler-service/policy_net/adam.h"

#include <Eigen/Core>

#include <cmath>

namespace medley::sched::policy_net {

template <typename S>
void Adam<S>::Climb(const std::vector<S>& gradient, std::vector<S>& parameters) {
  using Array = Eigen::Array<S, Eigen::Dynamic, 1>;
  const auto size = static_cast<Eigen::Index>(gradient.size());
  const Eigen::Map<const Array> g(gradient.data(), size);
  Eigen::Map<Array> m(first_.data(), size), v(second_.data(), size), p(parameters.data(), size);
  const double norm = std::sqrt(static_cast<double>(g.square().sum()));
  if (!std::isfinite(norm)) return;
  const bool clip = options_.clip_norm > 0 && norm > options_.clip_norm;
  const S scale = static_cast<S>(clip ? options_.clip_norm / norm : 1);
  power1_ *= options_.beta1;
  power2_ *= options_.beta2;
  const S b1 = static_cast<S>(options_.beta1), b2 = static_cast<S>(options_.beta2);
  m = b1 * m + (1 - b1) * scale * g;
  v = b2 * v + (1 - b2) * scale * scale * g.square();
  const S rate = static_cast<S>(options_.learning_rate / (1 - power1_));
  const S root = static_cast<S>(std::sqrt(1 - power2_));
  p += rate * m / (v.sqrt() / root + static_cast<S>(options_.epsilon));
}

template class Adam<float>;
template class Adam<double>;

}  // namespace medley::sched::policy_net
