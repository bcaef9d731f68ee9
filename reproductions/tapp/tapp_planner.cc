#include "reproductions/tapp/tapp_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "scheduler-service/pipeline/baselines.h"
#include "scheduler-service/pipeline/repair.h"
#include "scheduler-service/pipeline/timer.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::reproductions::tapp {
namespace {

constexpr double kOutOfMemory = 10;  // times the slowest device alone: what a pipeline that does not fit counts as
constexpr int kPaperGroups = 256;
constexpr double kPaperRate = 0.1;
constexpr int kWithoutNews = 15;  // rounds without a simulation, after which the policy draws nothing new

struct MovingAverage {
  bool known = false;
  double value = 0;
};

class Tapp final : public sched::Planner {
 public:
  Tapp(TappOptions options, std::function<void(const TappRound&)> watch)
      : options_(std::move(options)), watch_(std::move(watch)) {
    if (!options_.paper) return;
    options_.settings.partition = TappSettings::Partition::kGroups;
    options_.settings.groups = kPaperGroups;
    options_.settings.learning_rate = kPaperRate;
    options_.settings.entropy = 0;
  }
  std::string_view name() const override { return options_.paper ? "tapp-paper" : "tapp"; }
  std::string_view description() const override {
    return options_.paper
               ? "tapp with the settings of the paper: 256 groups, Adam's rate 0.1"
               : "a partition and an allocation network that learn pipelines by REINFORCE (Mao and others 2021)";
  }
  sched::Takes takes() const override { return {.supply = sched::Supply::kDevices, .graphs = true}; }
  absl::StatusOr<sched::Candidate> Search(const sched::Question& question, sched::Judge& judge, uint64_t seed,
                                          const sched::Budget& limits) const override {
    const sched::DeviceProblem& problem = question.devices();
    sched::PipelineTimer timer(judge, limits);
    auto policy = MakePolicy(problem, seed);
    const auto learning = static_cast<int64_t>((1 - options_.polish) * static_cast<double>(options_.calls));
    double slowest = 0, fastest = sched::kForever;  // of single devices
    for (int d = 0; d < problem.devices(); ++d) {
      const double seconds = problem.WorkOf(0, problem.layers(), d).At(1);
      slowest = std::max(slowest, seconds);
      fastest = std::min(fastest, seconds);
    }
    const double unit = options_.paper ? 1 : std::max(fastest, 1e-12);
    MovingAverage baseline;
    int64_t repaired = 0, news = 0;
    for (int64_t round = 0; round < options_.rounds && timer.calls() < learning && !limits.Spent(); ++round) {
      std::vector<double> rewards;
      double sum = 0;
      const int64_t before = timer.calls();
      for (const TappDraw& draw : policy->Draw(options_.draws_a_round)) {
        const sched::RepairedPipeline pipeline =
            sched::RepairPipeline(problem, draw.group_of_layer, draw.devices_of_group);
        repaired += pipeline.changed ? 1 : 0;
        const double seconds = std::min(timer.Seconds(pipeline.stages), kOutOfMemory * slowest);
        sum += seconds;
        rewards.push_back(-std::sqrt(seconds / unit));
      }
      if (timer.calls() > before) news = round;
      if (watch_) watch_({round, sum / options_.draws_a_round, timer.best_seconds()});
      policy->Learn(Advantages(rewards, baseline));
      if (round - news <= kWithoutNews) continue;
      // It has settled on few pipelines: from the beginning, by other chance, or there is nothing to learn.
      OfferLikeliest(problem, *policy, timer);
      if (options_.paper) break;
      policy = MakePolicy(problem, base::Mix64(seed + static_cast<uint64_t>(round)));
      baseline = {};
      news = round;
    }
    OfferLikeliest(problem, *policy, timer);
    const double learned = timer.best_seconds();
    base::Rng rng(seed);
    if (options_.polish > 0) {  // search starts from what a pipeline should beat
      for (int d = 0; d < problem.devices() && !limits.Spent(); ++d) timer.Seconds({{0, problem.layers(), {d}}});
    }
    if (options_.polish > 0 && !timer.best().empty()) {
      sched::SearchLocally(problem, timer.best(), std::min(options_.calls - learning, options_.calls - timer.calls()),
                           rng, limits, timer);
    }
    sched::Candidate best = timer.Best();
    best.repaired = repaired;
    if (timer.best_seconds() < learned * (1 - 1e-9)) {
      best.notes.push_back(fmt::format("local search shortened the networks' best step from {:.6g} s to {:.6g} s",
                                       learned, timer.best_seconds()));
    }
    return best;
  }

 private:
  std::unique_ptr<TappPolicy> MakePolicy(const sched::DeviceProblem& problem, uint64_t seed) const {
    return std::make_unique<TappPolicy>(FeaturesOf(problem), problem.devices(), options_.settings, seed);
  }
  static void OfferLikeliest(const sched::DeviceProblem& problem, TappPolicy& policy, sched::PipelineTimer& timer) {
    const TappDraw likely = policy.MostLikely();
    timer.Seconds(sched::RepairPipeline(problem, likely.group_of_layer, likely.devices_of_group).stages);
  }

  // Rewards less their moving average, which they then become part of.
  std::vector<double> Advantages(const std::vector<double>& rewards, MovingAverage& baseline) const {
    double mean = 0, squares = 0;
    for (const double reward : rewards) mean += reward / static_cast<double>(rewards.size());
    for (const double reward : rewards) squares += (reward - mean) * (reward - mean);
    const double spread = std::sqrt(squares / static_cast<double>(rewards.size()));
    const double base = baseline.known ? baseline.value : mean;
    std::vector<double> advantages;
    for (const double reward : rewards) {
      advantages.push_back(options_.paper ? reward - base : (reward - base) / std::max(spread, 1e-3));
    }
    baseline = {true, options_.baseline_decay * base + (1 - options_.baseline_decay) * mean};
    return advantages;
  }

  TappOptions options_;
  const std::function<void(const TappRound&)> watch_;
};

}  // namespace

std::unique_ptr<sched::Planner> MakeTapp(TappOptions options, std::function<void(const TappRound&)> watch) {
  return std::make_unique<Tapp>(std::move(options), std::move(watch));
}

}  // namespace medley::reproductions::tapp
