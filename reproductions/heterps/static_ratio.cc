#include "reproductions/heterps/static_ratio.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::reproductions::heterps {
namespace {

using sched::kSameCost;
using sched::PlacedTerms;
using sched::Problem;
using sched::Provisioned;
using sched::Score;
using sched::ServerLoad;
using sched::StageChoice;

// Shares units among the stages of one resource class.
class Share {
 public:
  Share(const Problem& problem, const std::vector<StageChoice>& stages, model::ResourceClass cls) : problem_(problem) {
    for (size_t i = 0; i < stages.size(); ++i) {
      if (problem.type(stages[i].type).cls != cls) continue;
      index_.push_back(i);
      terms_.push_back(problem.TermsIn(stages, i));
    }
  }

  bool empty() const { return index_.empty(); }
  int least() const { return problem_.min_units() * static_cast<int>(index_.size()); }

  // Distributes exactly `total` units over the stages. False if `total` is less than every stage's minimum together.
  bool Spread(int total, std::vector<StageChoice>& stages) const {
    if (total < least()) return false;
    for (const size_t i : index_) stages[i].units = problem_.min_units();
    int left = total - least();
    // Set the units for the highest throughput that `total` allows, then give the rest one by one to the slowest stage.
    left -= RaiseTo(HighestThroughput(total), stages);
    for (; left > 0; --left) {
      size_t slowest = index_[0];
      for (size_t n = 1; n < index_.size(); ++n) {
        if (Throughput(n, stages) < Throughput(Position(slowest), stages)) slowest = index_[n];
      }
      ++stages[slowest].units;
    }
    return true;
  }

 private:
  size_t Position(size_t stage) const {
    return static_cast<size_t>(std::find(index_.begin(), index_.end(), stage) - index_.begin());
  }
  double Throughput(size_t n, const std::vector<StageChoice>& stages) const {
    return problem_.Throughput(terms_[n], stages[index_[n]].units);
  }
  // The sum of the units that all stages need for throughput `x`; more than `most` if that is not enough.
  int64_t UnitsAt(double x, int most) const {
    int64_t sum = 0;
    for (const PlacedTerms& terms : terms_) {
      const int units = problem_.MinUnits(terms, x, most);
      sum += units == 0 ? int64_t{most} + 1 : units;
    }
    return sum;
  }
  double HighestThroughput(int total) const {
    double low = 0, high = std::numeric_limits<double>::infinity();
    for (const PlacedTerms& terms : terms_) high = std::min(high, problem_.Throughput(terms, total));
    if (!std::isfinite(high)) return 0;
    for (int i = 0; i < 50; ++i) {
      const double middle = (low + high) / 2;
      (UnitsAt(middle, total) <= total ? low : high) = middle;
    }
    return low;
  }
  // Sets the units for throughput `x`. Returns how many units this adds.
  int RaiseTo(double x, std::vector<StageChoice>& stages) const {
    if (x <= 0) return 0;
    int more = 0;
    for (size_t n = 0; n < index_.size(); ++n) {
      StageChoice& s = stages[index_[n]];
      const int units = problem_.MinUnits(terms_[n], x, std::numeric_limits<int>::max() / 2);
      more += units - s.units;
      s.units = units;
    }
    return more;
  }

  const Problem& problem_;
  std::vector<size_t> index_;
  std::vector<PlacedTerms> terms_;
};

class Ratio {
 public:
  Ratio(const Problem& problem, std::vector<StageChoice> stages, const StaticRatio& ratio)
      : problem_(problem.ForStages(static_cast<int>(stages.size()))),
        stages_(std::move(stages)),
        ratio_(ratio),
        gpu_(problem_, stages_, model::ResourceClass::kGpu),
        cpu_(problem_, stages_, model::ResourceClass::kCpu) {
    for (const StageChoice& s : stages_) load_.Add(problem_.Servers(s.first, s.last, s.type));
  }

  std::optional<Provisioned> Run() {
    if (gpu_.empty()) return std::nullopt;
    std::optional<Provisioned> best;
    const int most = MostCards();
    for (int cards = gpu_.least(); cards <= most; ++cards) {
      if (!gpu_.Spread(cards, stages_)) continue;
      const auto score = WithCores(cards);
      if (!score || !KeepsConstraints(problem_, stages_, *score)) continue;
      if (!best || score->cost < best->score.cost * (1 - kSameCost)) best = Provisioned{stages_, *score};
    }
    return best;
  }

 private:
  // With at least `servers` servers: ratios buy more than the model needs.
  Score ScoreWith(int servers) const {
    Score score = ScoreOf(problem_, stages_);
    const int more = std::max(servers - score.server_units, 0);
    score.server_units += more;
    score.hourly += problem_.server_price() * more;
    score.cost = problem_.Cost(score.hourly, score.throughput);
    return score;
  }
  int MostCards() const {
    int64_t most = 0;
    for (int t = 0; t < problem_.types(); ++t) {
      if (problem_.type(t).cls == model::ResourceClass::kGpu) most += problem_.limit(t);
    }
    return static_cast<int>(std::min<int64_t>(most, 1'000'000));
  }

  // Distributes the cores that belong to `cards` GPU cards. nullopt if there are too few cores.
  std::optional<Score> WithCores(int cards) {
    const int64_t wanted = int64_t{cards} * ratio_.trainers_per_gpu;
    if (wanted > 100'000'000) return std::nullopt;
    const int cores = static_cast<int>(wanted);
    if (ratio_.servers_per_gpu > 0 || !load_.any) {
      if (!cpu_.empty() && !cpu_.Spread(cores, stages_)) return std::nullopt;
      const int servers = load_.any ? cards * ratio_.servers_per_gpu : 0;
      const Score score = ScoreWith(servers);
      return load_.any && score.server_units > servers ? std::nullopt : std::optional(score);
    }
    if (cpu_.empty()) {
      const Score score = ScoreWith(cores);
      return score.server_units > cores ? std::nullopt : std::optional(score);
    }
    // More trainers need more servers. Find the largest number of trainers that leaves enough cores for their servers.
    int low = cpu_.least() - 1, high = cores;
    while (high - low > 0) {
      const int middle = low + (high - low + 1) / 2;
      const bool fits = cpu_.Spread(middle, stages_) && ScoreOf(problem_, stages_).server_units <= cores - middle;
      (fits ? low : high) = fits ? middle : middle - 1;
    }
    if (low < cpu_.least() || !cpu_.Spread(low, stages_)) return std::nullopt;
    return ScoreWith(cores - low);
  }

  const Problem problem_;
  std::vector<StageChoice> stages_;
  const StaticRatio ratio_;
  const Share gpu_, cpu_;
  ServerLoad load_;
};

}  // namespace

std::optional<Provisioned> ProvisionStatic(const Problem& problem, std::vector<StageChoice> stages,
                                           const StaticRatio& ratio) {
  return Ratio(problem, std::move(stages), ratio).Run();
}

}  // namespace medley::reproductions::heterps
