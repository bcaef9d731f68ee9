#include "tests/bench/shared_policy.h"

#include <algorithm>
#include <cmath>

#include "scheduler-service/planner/layer_bound.h"

namespace medley::sched {
namespace {

constexpr int kFirst = 32;  // hidden units
constexpr int kSecond = 16;
constexpr size_t kW1 = 0, kB1 = kW1 + kFirst * kPairFeatures, kW2 = kB1 + kFirst, kB2 = kW2 + kSecond * kFirst,
                 kW3 = kB2 + kSecond, kPenalty = kW3 + kSecond, kParameters = kPenalty + 3;
constexpr int kBoundRounds = 60;
constexpr double kNever = -1e30;

size_t Pos(int i) { return static_cast<size_t>(i); }

double LogAdd(double a, double b) {
  const double most = std::max(a, b);
  return most <= kNever ? kNever : most + std::log1p(std::exp(std::min(a, b) - most));
}

double LogSum(const double* values, int count) {
  double most = kNever;
  for (int i = 0; i < count; ++i) most = std::max(most, values[i]);
  if (most <= kNever) return kNever;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += std::exp(values[i] - most);
  return most + std::log(sum);
}

int DrawFrom(const std::vector<double>& logs, base::Rng& rng) {
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double v : logs) sum += std::exp(v - most);
  double left = rng.Uniform() * sum;
  for (size_t t = 0; t < logs.size(); ++t) {
    left -= std::exp(logs[t] - most);
    if (left < 0) return static_cast<int>(t);
  }
  return static_cast<int>(std::ranges::max_element(logs) - logs.begin());
}

float Log(double value) { return static_cast<float>(std::clamp(std::log(std::max(value, 1e-9)), -9.0, 9.0)); }

}  // namespace

Chain::Chain(ChainScores scores, double temperature) : scores_(std::move(scores)) {
  for (double& s : scores_.score) s = s <= kNever ? kNever : s / temperature;
  scores_.penalty /= temperature;
}

std::vector<int> Chain::MostProbable() const {
  const int types = scores_.types;
  std::vector<double> best(Pos(types));
  std::vector<int> from(scores_.score.size());
  for (int l = 0; l < scores_.layers; ++l) {
    const int top = static_cast<int>(std::ranges::max_element(best) - best.begin());
    const std::vector<double> before = best;
    for (int t = 0; t < types; ++t) {
      const double changed = before[Pos(top)] - scores_.penalty;
      const bool stays = l == 0 || before[Pos(t)] >= changed;
      from[Pos(l * types + t)] = stays ? t : top;
      best[Pos(t)] = std::max(kNever, (l == 0 ? 0 : stays ? before[Pos(t)] : changed) + scores_.At(l, t));
    }
  }
  std::vector<int> schedule(Pos(scores_.layers));
  int t = static_cast<int>(std::ranges::max_element(best) - best.begin());
  for (int l = scores_.layers - 1; l >= 0; --l) {
    schedule[Pos(l)] = t;
    t = from[Pos(l * types + t)];
  }
  return schedule;
}

std::vector<double> Chain::Forward(int first, int last, int before) const {
  const int types = scores_.types;
  std::vector<double> sums(Pos((last - first + 1) * types));
  for (int l = first; l <= last; ++l) {
    double* now = &sums[Pos((l - first) * types)];
    const double* earlier = l > first ? now - types : nullptr;
    const double all = earlier != nullptr ? LogSum(earlier, types) : 0;
    for (int t = 0; t < types; ++t) {
      double into = 0;
      if (earlier != nullptr) {
        // All earlier types change to t, but t itself stays.
        const double stays = earlier[t], others = all + std::log1p(-std::min(std::exp(earlier[t] - all), 1 - 1e-15));
        into = LogAdd(stays, others - scores_.penalty);
      } else if (before >= 0) {
        into = before == t ? 0 : -scores_.penalty;
      }
      now[t] = std::max(kNever, into + scores_.At(l, t));
    }
  }
  return sums;
}

std::vector<int> Chain::Draw(base::Rng& rng) const {
  std::vector<int> schedule(Pos(scores_.layers), -1);
  DrawAgain(0, scores_.layers - 1, rng, schedule);
  return schedule;
}

void Chain::DrawAgain(int first, int last, base::Rng& rng, std::vector<int>& schedule) const {
  const int types = scores_.types;
  const std::vector<double> sums = Forward(first, last, first > 0 ? schedule[Pos(first - 1)] : -1);
  int after = last + 1 < scores_.layers ? schedule[Pos(last + 1)] : -1;
  for (int l = last; l >= first; --l) {
    std::vector<double> logs(sums.begin() + (l - first) * types, sums.begin() + (l - first + 1) * types);
    for (int t = 0; t < types; ++t) {
      if (after >= 0 && after != t) logs[Pos(t)] -= scores_.penalty;
    }
    schedule[Pos(l)] = after = DrawFrom(logs, rng);
  }
}

ChainGradient GradientOf(const ChainScores& scores, const std::vector<int>& schedule) {
  const int layers = scores.layers, types = scores.types;
  const double p = scores.penalty;
  std::vector<double> forward(scores.score.size()), backward(scores.score.size(), 0);
  for (int l = 0; l < layers; ++l) {
    double* now = &forward[Pos(l * types)];
    const double all = l > 0 ? LogSum(now - types, types) : 0;
    for (int t = 0; t < types; ++t) {
      // exp(stays) + exp(-p) * (all - exp(stays)), as all of them with the penalty and what staying saves.
      const double into = l == 0 ? 0 : LogAdd(all - p, now[t - types] + std::log(std::max(1 - std::exp(-p), 1e-12)));
      now[t] = std::max(kNever, into + scores.At(l, t));
    }
  }
  const double z = LogSum(&forward[Pos((layers - 1) * types)], types);
  std::vector<double> next(Pos(types));
  ChainGradient out;
  out.score.assign(scores.score.size(), 0);
  for (int l = layers - 2; l >= 0; --l) {
    for (int t = 0; t < types; ++t) next[Pos(t)] = scores.At(l + 1, t) + backward[Pos((l + 1) * types + t)];
    const double all = LogSum(next.data(), types);
    double same = 0;
    for (int t = 0; t < types; ++t) {
      backward[Pos(l * types + t)] = LogAdd(all - p, next[Pos(t)] + std::log(std::max(1 - std::exp(-p), 1e-12)));
      same += std::exp(std::min(0.0, forward[Pos(l * types + t)] + next[Pos(t)] - z));
    }
    const bool changes = schedule[Pos(l)] != schedule[Pos(l + 1)];
    out.penalty += (changes ? 1 : 0) - (1 - std::min(same, 1.0));
  }
  double own = 0;
  for (int l = 0; l < layers; ++l) {
    for (int t = 0; t < types; ++t) {
      out.score[Pos(l * types + t)] =
          std::exp(std::min(0.0, forward[Pos(l * types + t)] + backward[Pos(l * types + t)] - z));
    }
    out.score[Pos(l * types + schedule[Pos(l)])] -= 1;
    own += scores.At(l, schedule[Pos(l)]);
    if (l > 0 && schedule[Pos(l)] != schedule[Pos(l - 1)]) own -= p;
  }
  out.loss = z - own;
  return out;
}

PairNumbers NumbersOf(const Problem& problem) {
  PairNumbers n;
  n.layers = problem.layers();
  n.types = problem.types();
  n.values.assign(Pos(n.layers * n.types * kPairFeatures), 0);
  n.allowed.assign(Pos(n.layers * n.types), 0);
  n.question = {1, std::log(n.layers / 100.0), std::log(n.types / 16.0)};
  const double low = problem.RequiredThroughput(), batch = problem.batch();
  LayerBound bound(problem, low);
  bound.Improve(kInfinity, kBoundRounds);
  const double mean = std::max(bound.rate() / n.layers, 1e-30);
  std::vector<double> cost(n.allowed.size(), kInfinity), units(n.allowed.size(), 0), use(Pos(n.types), 0);
  for (int l = 0; l < n.layers; ++l) {
    int best = -1;
    for (int t = 0; t < n.types; ++t) {
      const size_t i = Pos(l * n.types + t);
      n.allowed[i] = bound.Excess(l, t) < kInfinity ? 1 : 0;
      if (n.allowed[i] == 0) continue;
      const StageTerms terms = problem.LayerTerms(l, t);
      const double rest = std::max(batch - low * std::max(terms.compute_serial, terms.comm_serial), 1e-9 * batch);
      units[i] = low * std::max(terms.compute_parallel, terms.comm_parallel) / rest;
      cost[i] = problem.price(t) * (terms.ComputeSeconds(1) + terms.CommSeconds(1));
      if (best < 0 || bound.Excess(l, t) < bound.Excess(l, best)) best = t;
    }
    if (best >= 0) use[Pos(best)] += units[Pos(l * n.types + best)];
  }
  for (int l = 0; l < n.layers; ++l) {
    const auto row = cost.begin() + l * n.types;
    const double least = *std::min_element(row, row + n.types);
    for (int t = 0; t < n.types; ++t) {
      const size_t i = Pos(l * n.types + t);
      if (n.allowed[i] == 0) continue;
      const StageTerms terms = problem.LayerTerms(l, t), whole = problem.Terms(l, l, t);
      float* v = &n.values[i * kPairFeatures];
      v[0] = Log(cost[i] / least);
      v[1] = static_cast<float>(std::min(bound.Excess(l, t) / mean, 20.0) / 4);
      v[2] = Log(1e-9 + low * bound.multipliers()[Pos(t)] / std::max(problem.price(t), 1e-30)) / 4;
      v[3] = Log(units[i] / std::max(1, problem.limit(t))) / 4;
      v[4] = Log(problem.limit(t)) / 2;
      const double memory = problem.type(t).memory_bytes;
      v[5] = memory > 0 ? static_cast<float>(problem.LocalBytes(l, l, t) / memory) : 0;
      v[6] = static_cast<float>(low * terms.compute_serial / batch);
      v[7] = Log(1e-4 + whole.CommSeconds(1) / std::max(whole.ComputeSeconds(1), 1e-12)) / 4;
      v[8] = static_cast<float>(std::min(use[Pos(t)] / std::max(1, problem.limit(t)), 4.0));
      v[9] = bound.Excess(l, t) <= 0 ? 1 : 0;
    }
  }
  // Means over neighbouring layers of the excess and the cost, in windows of 4, 12 and 32 layers on either side.
  const int windows[] = {4, 12, 32};
  for (int t = 0; t < n.types; ++t) {
    for (const int what : {0, 1}) {
      std::vector<double> sums(Pos(n.layers + 1), 0);
      for (int l = 0; l < n.layers; ++l) {
        const size_t i = Pos(l * n.types + t);
        const double value = n.allowed[i] != 0 ? n.values[i * kPairFeatures + Pos(what)] : 5;
        sums[Pos(l + 1)] = sums[Pos(l)] + value;
      }
      for (int w = 0; w < 3; ++w) {
        for (int l = 0; l < n.layers; ++l) {
          const int from = std::max(0, l - windows[w]), to = std::min(n.layers, l + windows[w] + 1);
          n.values[Pos(l * n.types + t) * kPairFeatures + Pos(10 + what * 3 + w)] =
              static_cast<float>((sums[Pos(to)] - sums[Pos(from)]) / (to - from));
        }
      }
    }
  }
  return n;
}

namespace {

ChainScores ScoresBy(const PairNumbers& numbers, int feature, double sharpness, double penalty) {
  ChainScores s{numbers.layers, numbers.types, std::vector<double>(numbers.allowed.size(), kNever), penalty};
  for (size_t i = 0; i < s.score.size(); ++i) {
    if (numbers.allowed[i] != 0) s.score[i] = -sharpness * numbers.values[i * kPairFeatures + Pos(feature)];
  }
  return s;
}

}  // namespace

ChainScores GreedyScores(const PairNumbers& numbers, double sharpness, double penalty) {
  return ScoresBy(numbers, 0, sharpness, penalty);
}

ChainScores BoundScores(const PairNumbers& numbers, double sharpness, double penalty) {
  return ScoresBy(numbers, 1, sharpness, penalty);
}

struct SharedPolicy::Activations {
  std::array<double, kFirst> first;
  std::array<double, kSecond> second;
};

SharedPolicy::SharedPolicy(base::Rng& rng) : parameters_(kParameters, 0), mean_(kParameters), square_(kParameters) {
  const auto fill = [&](size_t from, size_t count, int inputs) {
    const double scale = std::sqrt(3.0 / inputs);
    for (size_t i = 0; i < count; ++i) parameters_[from + i] = rng.Uniform(-scale, scale);
  };
  fill(kW1, kFirst * kPairFeatures, kPairFeatures);
  fill(kW2, kSecond * kFirst, kFirst);
  fill(kW3, kSecond, kSecond);
  parameters_[kPenalty] = 3;
}

double SharedPolicy::Score(const float* in, Activations& a) const {
  const double* p = parameters_.data();
  for (int i = 0; i < kFirst; ++i) {
    double sum = p[kB1 + Pos(i)];
    for (int j = 0; j < kPairFeatures; ++j) sum += p[kW1 + Pos(i * kPairFeatures + j)] * in[j];
    a.first[Pos(i)] = std::max(0.0, sum);
  }
  double score = 0;
  for (int i = 0; i < kSecond; ++i) {
    double sum = p[kB2 + Pos(i)];
    for (int j = 0; j < kFirst; ++j) sum += p[kW2 + Pos(i * kFirst + j)] * a.first[Pos(j)];
    a.second[Pos(i)] = std::max(0.0, sum);
    score += p[kW3 + Pos(i)] * a.second[Pos(i)];
  }
  return score;
}

ChainScores SharedPolicy::ScoresOf(const PairNumbers& numbers) const {
  ChainScores s{numbers.layers, numbers.types, std::vector<double>(numbers.allowed.size(), kNever), 0};
  Activations a;
  for (size_t i = 0; i < s.score.size(); ++i) {
    if (numbers.allowed[i] != 0) s.score[i] = Score(&numbers.values[i * kPairFeatures], a);
  }
  for (size_t q = 0; q < 3; ++q) s.penalty += parameters_[kPenalty + q] * numbers.question[q];
  s.penalty = std::max(s.penalty, 0.01);
  return s;
}

void SharedPolicy::AddGradient(const float* in, const Activations& a, double upstream,
                               std::vector<double>& gradient) const {
  const double* p = parameters_.data();
  std::array<double, kFirst> into{};
  for (int i = 0; i < kSecond; ++i) {
    gradient[kW3 + Pos(i)] += upstream * a.second[Pos(i)];
    if (a.second[Pos(i)] <= 0) continue;
    const double g = upstream * p[kW3 + Pos(i)];
    gradient[kB2 + Pos(i)] += g;
    for (int j = 0; j < kFirst; ++j) {
      gradient[kW2 + Pos(i * kFirst + j)] += g * a.first[Pos(j)];
      into[Pos(j)] += g * p[kW2 + Pos(i * kFirst + j)];
    }
  }
  for (int i = 0; i < kFirst; ++i) {
    if (a.first[Pos(i)] <= 0) continue;
    gradient[kB1 + Pos(i)] += into[Pos(i)];
    for (int j = 0; j < kPairFeatures; ++j) gradient[kW1 + Pos(i * kPairFeatures + j)] += into[Pos(i)] * in[j];
  }
}

double SharedPolicy::Learn(const PairNumbers& numbers, const std::vector<int>& schedule, double rate) {
  const ChainGradient chain = GradientOf(ScoresOf(numbers), schedule);
  std::vector<double> gradient(kParameters, 0);
  Activations a;
  for (size_t i = 0; i < chain.score.size(); ++i) {
    if (numbers.allowed[i] == 0 || std::abs(chain.score[i]) < 1e-4) continue;
    const float* in = &numbers.values[i * kPairFeatures];
    Score(in, a);
    AddGradient(in, a, chain.score[i] / numbers.layers, gradient);
  }
  for (size_t q = 0; q < 3; ++q) gradient[kPenalty + q] += chain.penalty / numbers.layers * numbers.question[q];
  ++steps_;
  const double first = 1 - std::pow(0.9, steps_), second = 1 - std::pow(0.999, steps_);
  for (size_t i = 0; i < kParameters; ++i) {
    mean_[i] = 0.9 * mean_[i] + 0.1 * gradient[i];
    square_[i] = 0.999 * square_[i] + 0.001 * gradient[i] * gradient[i];
    parameters_[i] -= rate * (mean_[i] / first) / (std::sqrt(square_[i] / second) + 1e-8);
  }
  return chain.loss / numbers.layers;
}

}  // namespace medley::sched
