// Adam (Kingma, Ba 2015) for gradient ascent, with the gradient clipped to a norm. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace medley::sched::policy_net {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip_norm = 0;  // largest norm of the whole gradient; 0: no clipping
};

template <typename S>
class Adam {
 public:
  Adam(size_t parameters, const AdamOptions& options) : options_(options), first_(parameters), second_(parameters) {}

  // Takes one ascent step: moves `parameters` in the direction of `gradient`. Ignores a gradient that is not finite.
  void Climb(const std::vector<S>& gradient, std::vector<S>& parameters);
  void set_learning_rate(double value) { options_.learning_rate = value; }

 private:
  AdamOptions options_;
  std::vector<S> first_, second_;
  double power1_ = 1, power2_ = 1;
};

extern template class Adam<float>;
extern template class Adam<double>;

}  // namespace medley::sched::policy_net
