#include "reproductions/heterps/gaussian_process.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace medley::reproductions::heterps {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Point = GaussianProcess::Point;

struct Hyperparameters {
  double entries = 0.3;  // length scale a of the kernel
  double cuts = 0.3;     // length scale b of the kernel
  double noise = 1e-3;   // variance of the noise of the standardised values
};

// For each position except the first: 1 if it differs from the previous one, else 0.
Point CutsOf(const Point& point) {
  Point cuts;
  for (size_t i = 1; i < point.size(); ++i) cuts.push_back(point[i] == point[i - 1] ? 0 : 1);
  return cuts;
}

double ShareDifferent(const Point& a, const Point& b) {
  if (a.empty()) return 0;
  int different = 0;
  for (size_t i = 0; i < a.size(); ++i) different += a[i] != b[i] ? 1 : 0;
  return static_cast<double>(different) / static_cast<double>(a.size());
}

double Correlation(double entries, double cuts, const Hyperparameters& h) {
  return std::exp(-entries / h.entries - cuts / h.cuts);
}

}  // namespace

struct GaussianProcess::State {
  std::vector<Point> points, cuts;
  std::vector<double> values;
  MatrixXd entry_distance, cut_distance;  // between the fitted points
  double mean = 0, scale = 1;
  Hyperparameters h;
  Eigen::LLT<MatrixXd> cholesky;
  VectorXd alpha;  // K^-1 y
  double log_likelihood = 0;

  void Distances() {
    const auto n = static_cast<Index>(points.size());
    const Index before = entry_distance.rows();
    entry_distance.conservativeResize(n, n);
    cut_distance.conservativeResize(n, n);
    for (Index i = before; i < n; ++i) {
      for (Index j = 0; j <= i; ++j) {
        const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
        entry_distance(i, j) = entry_distance(j, i) = ShareDifferent(points[a], points[b]);
        cut_distance(i, j) = cut_distance(j, i) = ShareDifferent(cuts[a], cuts[b]);
      }
    }
  }

  void Standardise() {
    const auto n = static_cast<double>(values.size());
    mean = 0;
    for (const double v : values) mean += v / n;
    double variance = 0;
    for (const double v : values) variance += (v - mean) * (v - mean) / n;
    scale = variance > 1e-18 ? std::sqrt(variance) : 1;
  }

  VectorXd Targets() const {
    VectorXd y(static_cast<Index>(values.size()));
    for (Index i = 0; i < y.size(); ++i) y(i) = (values[static_cast<size_t>(i)] - mean) / scale;
    return y;
  }

  // Computes `cholesky` and `alpha` for the hyperparameters `with`, and returns the log marginal likelihood.
  double Decompose(const Hyperparameters& with) {
    MatrixXd k = (-(entry_distance / with.entries + cut_distance / with.cuts)).array().exp().matrix();
    k.diagonal().array() += with.noise + 1e-10;
    cholesky.compute(k);
    if (cholesky.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
    const VectorXd y = Targets();
    alpha = cholesky.solve(y);
    const double log_determinant = 2 * MatrixXd(cholesky.matrixL()).diagonal().array().log().sum();
    return -0.5 * (y.dot(alpha) + log_determinant + static_cast<double>(y.size()) * std::log(2 * std::numbers::pi));
  }
};

GaussianProcess::GaussianProcess() : state_(std::make_unique<State>()) {}
GaussianProcess::~GaussianProcess() = default;

void GaussianProcess::Add(const Point& point, double value) {
  state_->points.push_back(point);
  state_->cuts.push_back(CutsOf(point));
  state_->values.push_back(value);
}

void GaussianProcess::Fit(bool choose) {
  State& s = *state_;
  s.Distances();
  s.Standardise();
  if (choose) {
    double best = -std::numeric_limits<double>::infinity();
    Hyperparameters chosen = s.h;
    for (const double entries : {0.1, 0.25, 0.6, 1.5}) {
      for (const double cuts : {0.1, 0.25, 0.6, 1.5}) {
        for (const double noise : {1e-4, 1e-2}) {
          const Hyperparameters with{entries, cuts, noise};
          const double likelihood = s.Decompose(with);
          if (likelihood <= best) continue;
          best = likelihood;
          chosen = with;
        }
      }
    }
    s.h = chosen;
  }
  s.log_likelihood = s.Decompose(s.h);
}

double GaussianProcess::log_likelihood() const { return state_->log_likelihood; }

std::vector<Belief> GaussianProcess::Predict(const std::vector<Point>& points) const {
  const State& s = *state_;
  MatrixXd k(s.alpha.size(), static_cast<Index>(points.size()));
  for (Index j = 0; j < k.cols(); ++j) {
    const Point& point = points[static_cast<size_t>(j)];
    const Point cuts = CutsOf(point);
    for (Index i = 0; i < k.rows(); ++i) {
      const auto a = static_cast<size_t>(i);
      k(i, j) = Correlation(ShareDifferent(s.points[a], point), ShareDifferent(s.cuts[a], cuts), s.h);
    }
  }
  const VectorXd means = k.transpose() * s.alpha;
  const MatrixXd v = s.cholesky.matrixL().solve(k);
  std::vector<Belief> beliefs;
  for (Index j = 0; j < k.cols(); ++j) {
    const double variance = std::max(1 - v.col(j).squaredNorm(), 1e-12);
    beliefs.push_back({s.mean + s.scale * means(j), s.scale * std::sqrt(variance)});
  }
  return beliefs;
}

double ExpectedImprovement(const Belief& belief, double least) {
  if (!(belief.deviation > 0)) return std::max(least - belief.mean, 0.0);
  const double z = (least - belief.mean) / belief.deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return belief.deviation * (z * below + density);
}

}  // namespace medley::reproductions::heterps
