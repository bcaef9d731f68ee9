// A model of scalar operations, and one process that trains it by the equations of the papers. It includes nothing of
// common/program, or it would repeat the compiler's mistakes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace medley::program::toy {

enum class OpKind { kDense, kPlain, kTable };

inline constexpr int kRows = 4;

struct Op {
  OpKind kind = OpKind::kDense;
  std::vector<int> inputs;  // -1: the batch
  bool terminal = false;    // has a label
};

// Parameters and optimizer state of a dense operation, or of a row (only `w` is used).
struct Weights {
  double w = 0, b = 0, w_squares = 0, b_squares = 0;
};

inline double Feature(int step, int sample) { return std::sin(1.7 * step + 0.9 * sample + 0.3); }
inline double Label(int step, int sample) { return std::cos(0.7 * step + 1.3 * sample); }
inline int Row(int op, int step, int sample) { return (op * 7 + step * 3 + sample * 5) % kRows; }
inline Weights Initial(int op, int row = 0) {
  return {0.6 + 0.1 * std::sin(op + 3.0 * row), 0.1 * std::cos(op + row), 0, 0};
}

// What an operation gives for the sum of its inputs, and the derivatives.
inline double Output(const Op& op, const Weights& weights, double z) {
  if (op.kind == OpKind::kDense) return std::tanh(weights.w * z + weights.b);
  return op.kind == OpKind::kTable ? weights.w + std::tanh(z) : std::sin(z);
}
struct Derivatives {
  double z = 0, w = 0, b = 0;
};
inline Derivatives Derive(const Op& op, const Weights& weights, double z, double gradient) {
  if (op.kind == OpKind::kPlain) return {gradient * std::cos(z), 0, 0};
  const double y = std::tanh(op.kind == OpKind::kDense ? weights.w * z + weights.b : z);
  const double inner = gradient * (1 - y * y);
  if (op.kind == OpKind::kDense) return {inner * weights.w, inner * z, inner};
  return {inner, gradient, 0};
}
inline void Apply(Weights& weights, double w, double b, bool adagrad) {
  const double rate = 0.3;
  if (adagrad) {
    weights.w_squares += w * w;
    weights.b_squares += b * b;
    weights.w -= rate * w / std::sqrt(weights.w_squares + 1e-4);
    weights.b -= rate * b / std::sqrt(weights.b_squares + 1e-4);
  } else {
    weights.w -= rate * w;
    weights.b -= rate * b;
  }
}

struct State {
  std::vector<Weights> dense;              // by operation
  std::vector<std::vector<Weights>> rows;  // by operation
};

// What the reference needs to know of a plan.
struct Recipe {
  std::vector<Op> ops;
  int count = 1;  // samples a step
  bool adagrad = false;
  std::vector<int> lag;  // by operation
  // Replicas that differ; otherwise one. Samples of each replica, and the replicas that add their gradients.
  std::vector<std::vector<int>> samples;
  std::vector<std::vector<int>> groups;
};

class Reference {
 public:
  explicit Reference(Recipe recipe) : recipe_(std::move(recipe)) {
    State state;
    for (int i = 0; i < static_cast<int>(recipe_.ops.size()); ++i) {
      state.dense.push_back(Initial(i));
      state.rows.emplace_back();
      for (int row = 0; row < kRows; ++row) state.rows.back().push_back(Initial(i, row));
    }
    for (size_t r = 0; r < recipe_.samples.size(); ++r) versions_.push_back({{-1, state}});
  }

  // Executes a step; `drained`: the last step before the drain. Returns the loss.
  double Step(int step, int drained, bool agrees) {
    double loss = 0;
    std::vector<State> sums;
    for (size_t r = 0; r < recipe_.samples.size(); ++r) sums.push_back(Gradients(r, step, drained, &loss));
    for (const std::vector<int>& group : recipe_.groups) {
      size_t count = 0;
      for (const int r : group) count += recipe_.samples[static_cast<size_t>(r)].size();
      for (const int r : group) {
        State next = versions_[static_cast<size_t>(r)].at(step - 1);
        for (size_t i = 0; i < recipe_.ops.size(); ++i) {
          Weights sum;
          std::vector<double> rows(kRows, 0);
          for (const int other : group) {
            sum.w += sums[static_cast<size_t>(other)].dense[i].w;
            sum.b += sums[static_cast<size_t>(other)].dense[i].b;
            for (size_t row = 0; row < kRows; ++row) rows[row] += sums[static_cast<size_t>(other)].rows[i][row].w;
          }
          const double n = count == 0 ? 1 : static_cast<double>(count);
          Apply(next.dense[i], sum.w / n, sum.b / n, recipe_.adagrad);
          for (size_t row = 0; row < kRows; ++row) Apply(next.rows[i][row], rows[row] / n, 0, recipe_.adagrad);
        }
        versions_[static_cast<size_t>(r)][step] = next;
      }
    }
    if (agrees) Average(step);
    return loss / recipe_.count;
  }

  double Evaluate(int step, int version) {
    double loss = 0;
    for (size_t r = 0; r < recipe_.samples.size(); ++r) {
      const std::vector<int> lag = recipe_.lag;
      std::fill(recipe_.lag.begin(), recipe_.lag.end(), 1);
      Gradients(r, step, version, &loss, version);
      recipe_.lag = lag;
    }
    return loss / recipe_.count;
  }

  const State& At(size_t replica, int step) const { return versions_[replica].at(step); }

 private:
  void Average(int step) {
    State mean = versions_[0].at(step);
    for (size_t i = 0; i < mean.dense.size(); ++i) {
      Weights& m = mean.dense[i];
      for (size_t r = 1; r < versions_.size(); ++r) {
        const Weights& o = versions_[r].at(step).dense[i];
        m = {m.w + o.w, m.b + o.b, m.w_squares + o.w_squares, m.b_squares + o.b_squares};
      }
      const auto n = static_cast<double>(versions_.size());
      m = {m.w / n, m.b / n, m.w_squares / n, m.b_squares / n};
    }
    for (auto& versions : versions_) versions[step].dense = mean.dense;
  }

  State Gradients(size_t replica, int step, int drained, double* loss, int exact = -2) {
    const size_t n = recipe_.ops.size();
    State sums{std::vector<Weights>(n), std::vector<std::vector<Weights>>(n, std::vector<Weights>(kRows))};
    const auto weights = [&](size_t i, int sample) -> const Weights& {
      const int version = exact > -2 ? exact : std::max(drained, step - recipe_.lag[i]);
      const State& state = versions_[replica].at(version);
      return recipe_.ops[i].kind == OpKind::kTable
                 ? state.rows[i][static_cast<size_t>(Row(static_cast<int>(i), step, sample))]
                 : state.dense[i];
    };
    for (const int sample : recipe_.samples[replica]) {
      std::vector<double> z(n), y(n), gradient(n);
      for (size_t i = 0; i < n; ++i) {
        for (const int input : recipe_.ops[i].inputs) {
          z[i] += input < 0 ? Feature(step, sample) : y[static_cast<size_t>(input)];
        }
        y[i] = Output(recipe_.ops[i], weights(i, sample), z[i]);
        if (!recipe_.ops[i].terminal) continue;
        const double error = y[i] - Label(step, sample);
        *loss += error * error / 2;
        gradient[i] = error;
      }
      for (size_t i = n; i-- > 0;) {
        const Derivatives d = Derive(recipe_.ops[i], weights(i, sample), z[i], gradient[i]);
        for (const int input : recipe_.ops[i].inputs) {
          if (input >= 0) gradient[static_cast<size_t>(input)] += d.z;
        }
        if (recipe_.ops[i].kind == OpKind::kDense) {
          sums.dense[i].w += d.w;
          sums.dense[i].b += d.b;
        } else if (recipe_.ops[i].kind == OpKind::kTable) {
          sums.rows[i][static_cast<size_t>(Row(static_cast<int>(i), step, sample))].w += d.w;
        }
      }
    }
    return sums;
  }

  Recipe recipe_;
  std::vector<std::map<int, State>> versions_;  // by replica: after each step; -1: the initial state
};

}  // namespace medley::program::toy
