// Gaussian process regression over categorical vectors, with which Bayesian optimisation predicts the costs of
// schedules that it has not evaluated.
//
// The kernel is s^2 exp(-d / a - c / b) + noise. d is the share of positions at which two vectors differ. c is the
// share of neighbouring positions at which only one of the two vectors changes its value (has a cut). The kernel is a
// product of overlap kernels over entries and over cuts, hence positive definite. s^2 and the mean come from
// standardising the values; a, b and the noise are chosen from a grid by marginal likelihood. Solved by Cholesky
// decomposition.
//
// Not thread-safe. Time: Fit O(n^3), Predict O(n^2) per point.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace medley::reproductions::heterps {

struct Belief {
  double mean = 0;
  double deviation = 0;
};

class GaussianProcess {
 public:
  using Point = std::vector<uint8_t>;  // the category at each position; all points have the same length, at least 1

  GaussianProcess();
  ~GaussianProcess();

  void Add(const Point& point, double value);
  // Fits the model to all added points. With `choose`, also selects the hyperparameters again.
  void Fit(bool choose);
  // Call it after Fit. The result has the unit of the values.
  std::vector<Belief> Predict(const std::vector<Point>& points) const;
  // The log marginal likelihood of the standardised values.
  double log_likelihood() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The expected amount by which a normally distributed value is below `least`.
double ExpectedImprovement(const Belief& belief, double least);

}  // namespace medley::reproductions::heterps
