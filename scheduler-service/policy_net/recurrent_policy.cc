#include "scheduler-service/policy_net/recurrent_policy.h"

#include <absl/functional/function_ref.h>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace medley::sched::policy_net {
namespace {

template <typename S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <typename S>
using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;

size_t At(int i) { return static_cast<size_t>(i); }

// Views of the blocks of a parameter or gradient vector.
template <typename S, typename Pointer>
struct Blocks {
  using MatrixMap =
      Eigen::Map<std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const Matrix<S>, Matrix<S>>>;
  using VectorMap =
      Eigen::Map<std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const Vector<S>, Vector<S>>>;
  Blocks(Pointer p, const PolicyShape& shape, const ParameterLayout& layout)
      : wx(p + layout.wx, shape.GateRows(), shape.features),
        wa(p + layout.wa, shape.GateRows(), shape.actions),
        wh(p + layout.wh, shape.GateRows(), shape.hidden),
        b(p + layout.b, shape.GateRows()),
        wo(p + layout.wo, shape.actions, shape.hidden),
        bo(p + layout.bo, shape.actions),
        ws(p + layout.ws, shape.actions, shape.actions) {}
  MatrixMap wx, wa, wh;
  VectorMap b;
  MatrixMap wo;
  VectorMap bo;
  MatrixMap ws;
};

template <typename S>
Eigen::Map<const Eigen::MatrixXf> FeaturesOf(const PolicyInputs& inputs, const PolicyShape& shape) {
  return {inputs.features.data(), shape.features, inputs.steps};
}

template <typename S>
Vector<S> AllowedAt(const PolicyInputs& inputs, const PolicyShape& shape, int step) {
  using Bytes = Eigen::Matrix<uint8_t, Eigen::Dynamic, 1>;
  const Eigen::Map<const Bytes> allowed(inputs.allowed.data() + At(step) * At(shape.actions), shape.actions);
  return allowed.template cast<S>();
}

// Draws the action of each sample for one step, from probabilities [actions x samples].
template <typename S>
void Draw(const Matrix<S>& probability, const Vector<S>& allowed, base::Rng& rng, std::vector<int>& chosen) {
  const auto actions = static_cast<int>(probability.rows());
  for (size_t n = 0; n < chosen.size(); ++n) {
    const double at = rng.Uniform();
    double sum = 0;
    int last = 0;
    for (int a = 0; a < actions; ++a) {
      if (allowed(a) == 0) continue;
      last = a;
      sum += static_cast<double>(probability(a, static_cast<Eigen::Index>(n)));
      if (at < sum) break;
    }
    chosen[n] = last;  // because of rounding, the sum may end slightly below `at`
  }
}

// Softmax of each column over the allowed rows, in place.
template <typename S>
void MaskedSoftmax(const Vector<S>& allowed, Matrix<S>& logits) {
  constexpr S kNever = std::is_same_v<S, float> ? S(-1e30) : S(-1e300);
  for (Eigen::Index a = 0; a < logits.rows(); ++a) {
    if (allowed(a) == 0) logits.row(a).setConstant(kNever);
  }
  logits.rowwise() -= logits.colwise().maxCoeff().eval();
  logits = logits.array().exp().matrix();
  for (Eigen::Index a = 0; a < logits.rows(); ++a) {
    if (allowed(a) == 0) logits.row(a).setZero();
  }
  const auto sums = logits.colwise().sum().eval();
  logits.array().rowwise() /= sums.array();
}

}  // namespace

template <typename S>
struct Rollout<S>::Tape {
  // Indexed by step; columns are samples.
  std::vector<Matrix<S>> gates;        // after their nonlinearities (LSTM)
  std::vector<Matrix<S>> cell;         // c_t (LSTM)
  std::vector<Matrix<S>> cell_tanh;    // tanh(c_t) (LSTM)
  std::vector<Matrix<S>> hidden;       // h_t
  std::vector<Matrix<S>> probability;  // [actions x samples]
  std::vector<std::vector<int>> action;

  void Resize(int steps, CellKind kind) {
    for (auto* list : {&gates, &cell, &cell_tanh}) list->resize(kind == CellKind::kLstm ? At(steps) : 0);
    hidden.resize(At(steps));
    probability.resize(At(steps));
    action.resize(At(steps));
  }
};

template <typename S>
Rollout<S>::Rollout() : tape(std::make_unique<Tape>()) {}
template <typename S>
Rollout<S>::~Rollout() = default;
template <typename S>
Rollout<S>::Rollout(Rollout&&) noexcept = default;
template <typename S>
Rollout<S>& Rollout<S>::operator=(Rollout&&) noexcept = default;

namespace {

// The forward pass over all steps. `choose(step, probability, allowed, chosen)` selects the actions of a step.
template <typename S>
class Forward {
 public:
  Forward(const PolicyShape& shape, const ParameterLayout& layout, const std::vector<S>& parameters,
          const PolicyInputs& inputs, int samples, Rollout<S>& rollout)
      : shape_(shape), w_(parameters.data(), shape, layout), inputs_(inputs), samples_(samples), out_(rollout) {
    projected_.noalias() = w_.wx * FeaturesOf<S>(inputs, shape).template cast<S>();
    projected_.colwise() += w_.b;
    out_.samples = samples;
    out_.actions.assign(At(samples) * At(inputs.steps), 0);
    out_.log_probability.assign(At(samples), 0);
    out_.entropy = 0;
    out_.tape->Resize(inputs.steps, shape.cell);
  }

  using Choose = absl::FunctionRef<void(int step, const Matrix<S>& probability, const Vector<S>& allowed,
                                        std::vector<int>& chosen)>;
  void Run(Choose choose) {
    double entropy = 0;
    for (int t = 0; t < inputs_.steps; ++t) {
      Cell(t);
      Matrix<S>& p = out_.tape->probability[At(t)];
      p.noalias() = w_.wo * out_.tape->hidden[At(t)];
      p.colwise() += w_.bo;
      if (t > 0) {
        const std::vector<int>& before = out_.tape->action[At(t - 1)];
        for (int n = 0; n < samples_; ++n) p.col(n) += w_.ws.col(before[At(n)]);
      }
      const Vector<S> allowed = AllowedAt<S>(inputs_, shape_, t);
      MaskedSoftmax(allowed, p);
      entropy -= static_cast<double>((p.array() * (p.array() + S(1e-30)).log()).sum());
      std::vector<int>& chosen = out_.tape->action[At(t)];
      chosen.resize(At(samples_));
      choose(t, p, allowed, chosen);
      for (int n = 0; n < samples_; ++n) {
        const int a = chosen[At(n)];
        out_.actions[At(n) * At(inputs_.steps) + At(t)] = a;
        out_.log_probability[At(n)] += std::log(std::max(static_cast<double>(p(a, n)), 1e-30));
      }
    }
    out_.entropy = entropy / (static_cast<double>(inputs_.steps) * samples_);
  }

 private:
  void Cell(int t) {
    Matrix<S>& h = out_.tape->hidden[At(t)];
    Matrix<S>& z = shape_.cell == CellKind::kLstm ? out_.tape->gates[At(t)] : h;
    if (t == 0) {
      z = projected_.col(0).replicate(1, samples_);
    } else {
      z.noalias() = w_.wh * out_.tape->hidden[At(t - 1)];
      const std::vector<int>& before = out_.tape->action[At(t - 1)];
      for (int n = 0; n < samples_; ++n) z.col(n) += projected_.col(t) + w_.wa.col(before[At(n)]);
    }
    if (shape_.cell == CellKind::kElman) {
      h = h.array().tanh().matrix();
      return;
    }
    const int rows = shape_.hidden;
    auto i = z.middleRows(0, rows), f = z.middleRows(rows, rows), g = z.middleRows(2 * rows, rows),
         o = z.middleRows(3 * rows, rows);
    z.topRows(2 * rows) = z.topRows(2 * rows).array().logistic().matrix();
    g = g.array().tanh().matrix();
    o = o.array().logistic().matrix();
    Matrix<S>& c = out_.tape->cell[At(t)];
    c = (i.array() * g.array()).matrix();
    if (t > 0) c.array() += f.array() * out_.tape->cell[At(t - 1)].array();
    Matrix<S>& c_tanh = out_.tape->cell_tanh[At(t)];
    c_tanh = c.array().tanh().matrix();
    h = (o.array() * c_tanh.array()).matrix();
  }

  const PolicyShape& shape_;
  const Blocks<S, const S*> w_;
  const PolicyInputs& inputs_;
  const int samples_;
  Rollout<S>& out_;
  Matrix<S> projected_;  // Wx f_t + b, [gate rows x steps]
};

// Backpropagation through time.
template <typename S>
class Backward {
 public:
  Backward(const PolicyShape& shape, const ParameterLayout& layout, const std::vector<S>& parameters,
           const PolicyInputs& inputs, const Rollout<S>& rollout, std::vector<S>& gradient)
      : shape_(shape),
        w_(parameters.data(), shape, layout),
        d_(gradient.data(), shape, layout),
        inputs_(inputs),
        tape_(*rollout.tape),
        samples_(rollout.samples) {}

  void Run(std::span<const S> weights, S entropy_weight) {
    const Eigen::Map<const Vector<S>> weight(weights.data(), samples_);
    Matrix<S> d_projected = Matrix<S>::Zero(shape_.GateRows(), inputs_.steps);
    Matrix<S> d_hidden = Matrix<S>::Zero(shape_.hidden, samples_);
    d_cell_ = Matrix<S>::Zero(shape_.hidden, samples_);
    Matrix<S> d_logits, d_z;
    for (int t = inputs_.steps - 1; t >= 0; --t) {
      Logits(t, weight, entropy_weight, d_logits);
      const Matrix<S>& h = tape_.hidden[At(t)];
      d_.wo.noalias() += d_logits * h.transpose();
      d_.bo += d_logits.rowwise().sum();
      d_hidden.noalias() += w_.wo.transpose() * d_logits;
      Cell(t, d_hidden, d_z);
      d_projected.col(t) = d_z.rowwise().sum();
      if (t == 0) break;
      d_.wh.noalias() += d_z * tape_.hidden[At(t - 1)].transpose();
      const std::vector<int>& before = tape_.action[At(t - 1)];
      for (int n = 0; n < samples_; ++n) {
        d_.wa.col(before[At(n)]) += d_z.col(n);
        d_.ws.col(before[At(n)]) += d_logits.col(n);
      }
      d_hidden.noalias() = w_.wh.transpose() * d_z;
    }
    d_.b += d_projected.rowwise().sum();
    d_.wx.noalias() += d_projected * FeaturesOf<S>(inputs_, shape_).template cast<S>().transpose();
  }

 private:
  // d log p(a) / d logits = onehot(a) - p; d entropy / d logits_i = -p_i (log p_i + entropy).
  void Logits(int t, const Eigen::Map<const Vector<S>>& weight, S entropy_weight, Matrix<S>& out) const {
    const Matrix<S>& p = tape_.probability[At(t)];
    out = (p.array().rowwise() * -weight.transpose().array()).matrix();
    const std::vector<int>& chosen = tape_.action[At(t)];
    for (int n = 0; n < samples_; ++n) out(chosen[At(n)], n) += weight(n);
    if (entropy_weight == 0) return;
    const Matrix<S> log_p = (p.array() + S(1e-30)).log().matrix();
    const auto entropy = (-(p.array() * log_p.array())).colwise().sum().eval();
    out.array() -= entropy_weight * (p.array() * (log_p.array().rowwise() + entropy));
  }

  // Computes from d h_t the gradient before the nonlinearities, and moves d_cell_ to step t - 1.
  void Cell(int t, const Matrix<S>& d_hidden, Matrix<S>& d_z) {
    d_z.resize(shape_.GateRows(), samples_);
    if (shape_.cell == CellKind::kElman) {
      d_z = (d_hidden.array() * (S(1) - tape_.hidden[At(t)].array().square())).matrix();
      return;
    }
    const int rows = shape_.hidden;
    const Matrix<S>& z = tape_.gates[At(t)];
    const auto i = z.middleRows(0, rows).array(), f = z.middleRows(rows, rows).array(),
               g = z.middleRows(2 * rows, rows).array(), o = z.middleRows(3 * rows, rows).array();
    const auto c_tanh = tape_.cell_tanh[At(t)].array();
    d_cell_.array() += d_hidden.array() * o * (S(1) - c_tanh.square());
    d_z.middleRows(0, rows) = (d_cell_.array() * g * i * (S(1) - i)).matrix();
    if (t > 0) {
      d_z.middleRows(rows, rows) = (d_cell_.array() * tape_.cell[At(t - 1)].array() * f * (S(1) - f)).matrix();
    } else {
      d_z.middleRows(rows, rows).setZero();
    }
    d_z.middleRows(2 * rows, rows) = (d_cell_.array() * i * (S(1) - g.square())).matrix();
    d_z.middleRows(3 * rows, rows) = (d_hidden.array() * c_tanh * o * (S(1) - o)).matrix();
    d_cell_.array() *= f;
  }

  const PolicyShape& shape_;
  const Blocks<S, const S*> w_;
  Blocks<S, S*> d_;
  const PolicyInputs& inputs_;
  const typename Rollout<S>::Tape& tape_;
  const int samples_;
  Matrix<S> d_cell_;
};

}  // namespace

template <typename S>
RecurrentPolicy<S>::RecurrentPolicy(const PolicyShape& shape, double persistence, base::Rng& rng)
    : shape_(shape), layout_(shape), parameters_(layout_.size) {
  const double scale = 1 / std::sqrt(static_cast<double>(shape.hidden));
  for (size_t i = 0; i < layout_.wo; ++i) parameters_[i] = static_cast<S>(rng.Uniform(-scale, scale));
  for (size_t i = layout_.wo; i < layout_.ws; ++i) {
    parameters_[i] = static_cast<S>(rng.Uniform(-scale, scale) * 0.1);
  }
  if (shape.actions < 2) return;
  const double odds = persistence / (1 - persistence) * (shape.actions - 1);
  for (size_t a = 0; a < At(shape.actions); ++a) {
    parameters_[layout_.ws + a * At(shape.actions) + a] = static_cast<S>(std::log(odds));
  }
}

template <typename S>
RecurrentPolicy<S>::RecurrentPolicy(const PolicyShape& shape, std::vector<S> parameters)
    : shape_(shape), layout_(shape), parameters_(std::move(parameters)) {
  MEDLEY_CHECK(parameters_.size() == layout_.size, "the number of parameters does not match the shape of the policy");
}

template <typename S>
void RecurrentPolicy<S>::Sample(const PolicyInputs& inputs, int samples, base::Rng& rng, Rollout<S>& rollout) const {
  Forward<S>(shape_, layout_, parameters_, inputs, samples, rollout)
      .Run([&](int, const Matrix<S>& probability, const Vector<S>& allowed, std::vector<int>& chosen) {
        Draw<S>(probability, allowed, rng, chosen);
      });
}

template <typename S>
void RecurrentPolicy<S>::Follow(const PolicyInputs& inputs, const std::vector<int>& actions,
                                Rollout<S>& rollout) const {
  const size_t steps = At(inputs.steps);
  Forward<S>(shape_, layout_, parameters_, inputs, static_cast<int>(actions.size() / steps), rollout)
      .Run([&](int t, const Matrix<S>&, const Vector<S>&, std::vector<int>& chosen) {
        for (size_t n = 0; n < chosen.size(); ++n) chosen[n] = actions[n * steps + At(t)];
      });
}

template <typename S>
std::vector<int> RecurrentPolicy<S>::Greedy(const PolicyInputs& inputs) const {
  Rollout<S> rollout;
  Forward<S>(shape_, layout_, parameters_, inputs, 1, rollout)
      .Run([&](int, const Matrix<S>& probability, const Vector<S>& allowed, std::vector<int>& chosen) {
        int best = -1;
        for (int a = 0; a < shape_.actions; ++a) {
          if (allowed(a) != 0 && (best < 0 || probability(a, 0) > probability(best, 0))) best = a;
        }
        chosen[0] = best;
      });
  return rollout.actions;
}

template <typename S>
void RecurrentPolicy<S>::AddGradient(const PolicyInputs& inputs, const Rollout<S>& rollout, std::span<const S> weights,
                                     S entropy_weight, std::vector<S>& gradient) const {
  Backward<S>(shape_, layout_, parameters_, inputs, rollout, gradient).Run(weights, entropy_weight);
}

template class Rollout<float>;
template class Rollout<double>;
template class RecurrentPolicy<float>;
template class RecurrentPolicy<double>;

}  // namespace medley::sched::policy_net
