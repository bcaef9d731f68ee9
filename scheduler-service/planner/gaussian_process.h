// Gaussian process regression over categorical vectors: what Bayesian optimisation believes of schedules not yet tried.
//
// Kernel: s^2 exp(-(share of positions that differ) / a - (share of neighbours whose sameness differs) / b) + noise,
// the product of overlap kernels over the entries and over the cuts between them; hence positive definite. s^2 and the
// mean come from standardised values; a, b and the noise from a grid by marginal likelihood. Cholesky throughout.
//
// Not thread-safe. Cost: Fit O(n^3), Predict O(n^2) a point.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace medley::sched {

struct Belief {
  double mean = 0;
  double deviation = 0;
};

class GaussianProcess {
 public:
  using Point = std::vector<uint8_t>;  // a category for each position; all of one length, at least 1

  GaussianProcess();
  ~GaussianProcess();

  void Add(const Point& point, double value);
  // Takes the points added into account; with `choose`, chooses the hyperparameters anew.
  void Fit(bool choose);
  // After Fit. In the units of the values.
  std::vector<Belief> Predict(const std::vector<Point>& points) const;
  // Of the fitted, standardised values.
  double log_likelihood() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The expected improvement below `least` of a value believed to be normal.
double ExpectedImprovement(const Belief& belief, double least);

}  // namespace medley::sched
