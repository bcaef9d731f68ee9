#include "scheduler-service/devices/device_choices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/device.h"
#include "common/model/link_speed.h"
#include "common/model/planning.h"
#include "scheduler-service/devices/figures.h"
#include "scheduler-service/devices/shares.h"

namespace medley::sched {
namespace {

constexpr double kSlack = 1e-9;  // relative, for rounding

bool SameLink(const model::LinkSpeed& a, const model::LinkSpeed& b) {
  return a.latency_seconds == b.latency_seconds && a.bytes_per_second == b.bytes_per_second;
}

bool ShareMachine(const model::Device& a, const model::Device& b) {
  return !a.machine.empty() && a.machine == b.machine;
}

bool AreAlike(const DeviceProblem& problem, int a, int b) {
  if (problem.device(a).pool != problem.device(b).pool || !SameLink(problem.Link(a, b), problem.Link(b, a))) {
    return false;
  }
  for (int other = 0; other < problem.devices(); ++other) {
    if (other == a || other == b) continue;
    if (!SameLink(problem.Link(a, other), problem.Link(b, other)) ||
        !SameLink(problem.Link(other, a), problem.Link(other, b)) ||
        ShareMachine(problem.device(a), problem.device(other)) !=
            ShareMachine(problem.device(b), problem.device(other))) {
      return false;
    }
  }
  return true;
}

DeviceKinds KindsByPool(const DeviceProblem& problem) {
  std::map<std::string, std::vector<int>> pools;
  for (int d = 0; d < problem.devices(); ++d) pools[problem.device(d).pool].push_back(d);
  DeviceKinds kinds;
  kinds.exact = false;
  for (auto& [pool, devices] : pools) kinds.devices.push_back(std::move(devices));
  return kinds;
}

// Seconds of a sample of one layer alone on a device, at least.
double SampleSeconds(const DeviceProblem& problem, int layer, int d) {
  return problem.LeastWorkOf(layer, layer + 1, d).variable * problem.QuotaPart(d);
}

// The work of a step in units of a reference device, and how much of it each kind does in a second at most: the layers
// count as if each device had only those that it is best at. So seconds >= work / power, for every reference.
struct Reference {
  double work = 0;            // seconds of all layers on the reference device
  std::vector<double> power;  // by kind; infinite: a layer takes no time there
};

std::vector<Reference> ReferencesOf(const DeviceProblem& problem, const DeviceKinds& kinds) {
  std::vector<Reference> out;
  for (const std::vector<int>& reference : kinds.devices) {
    Reference& one = out.emplace_back();
    one.power.assign(kinds.devices.size(), 0);
    for (int l = 0; l < problem.layers(); ++l) {
      const double seconds = SampleSeconds(problem, l, reference.front());
      if (seconds <= 0) continue;
      one.work += seconds;
      for (size_t k = 0; k < kinds.devices.size(); ++k) {
        const double here = SampleSeconds(problem, l, kinds.devices[k].front());
        one.power[k] = std::max(one.power[k], here > 0 ? seconds / here : kForever);
      }
    }
  }
  return out;
}

// The numbers of a kind that are tried: all, or 0, 1, 2, 3 and then `ratio` times the one before.
std::vector<int> Steps(int most, double ratio) {
  std::vector<int> steps = {0};
  for (int n = 1; n < most; n = std::max(n + 1, static_cast<int>(std::lround(n * ratio)))) steps.push_back(n);
  if (most > 0) steps.push_back(most);
  return steps;
}

class Enumeration {
 public:
  Enumeration(const DeviceProblem& problem, const DeviceKinds& kinds, const model::Constraints& bounds,
              model::Objective objective)
      : problem_(problem),
        kinds_(kinds),
        bounds_(bounds),
        objective_(objective),
        references_(ReferencesOf(problem, kinds)),
        samples_(problem.request().training.TotalSamples()) {
    for (const std::vector<int>& kind : kinds.devices) {
      prices_.push_back(problem.UsdPerHour(kind.front()));
      most_.push_back(MostOf(static_cast<int>(kind.size()), prices_.back()));
    }
  }

  DeviceChoices Run() {
    DeviceChoices out;
    std::vector<std::vector<int>> steps;
    for (const double ratio : {1.0, 1.5, 2.0, 4.0}) {
      steps.clear();
      double number = 1;
      for (const int most : most_) {
        steps.push_back(Steps(most, ratio));
        number *= static_cast<double>(steps.back().size());
      }
      out.all = ratio == 1.0;
      if (number * (out.all ? 1 : 1.0 + static_cast<double>(most_.size())) <= kMostChoices) break;
      steps.clear();
    }
    if (steps.empty()) {
      AddGreedy();
    } else {
      std::vector<int> counts(most_.size(), 0);
      AddAll(steps, 0, counts, !out.all);
    }
    std::vector<DeviceChoice> possible;
    for (const std::vector<int>& counts : found_) AddChoice(counts, possible);
    std::vector<std::tuple<bool, double, double, int, size_t>> order;
    for (size_t i = 0; i < possible.size(); ++i) {
      const Figures figures = FiguresFor(possible[i], possible[i].estimate);
      order.emplace_back(!KeepsAll(bounds_, figures), ValueOf(figures, objective_), possible[i].usd_per_hour,
                         possible[i].units, i);
    }
    std::ranges::sort(order);
    for (const auto& place : order) out.choices.push_back(std::move(possible[std::get<size_t>(place)]));
    return out;
  }

 private:
  int MostOf(int there, double price) const {
    if (bounds_.max_units > 0) there = std::min(there, bounds_.max_units);
    if (bounds_.max_cost_per_hour > 0 && price > 0) {
      const double affordable = std::floor(bounds_.max_cost_per_hour * (1 + kSlack) / price);
      if (affordable < there) there = static_cast<int>(affordable);
    }
    return there;
  }

  // How many more of a kind the bounds of units and of USD per hour allow beside `counts`.
  int MostMore(const std::vector<int>& counts, size_t kind) const {
    int units = 0;
    double usd = 0;
    for (size_t k = 0; k < counts.size(); ++k) {
      units += counts[k];
      usd += counts[k] * prices_[k];
    }
    int more = most_[kind] - counts[kind];
    if (bounds_.max_units > 0) more = std::min(more, bounds_.max_units - units);
    if (bounds_.max_cost_per_hour > 0 && prices_[kind] > 0) {
      const double affordable =
          std::floor((bounds_.max_cost_per_hour * (1 + kSlack) - usd) / prices_[kind] * (1 + kSlack));
      more = std::min(more, static_cast<int>(std::clamp(affordable, -1.0, 1e6)));
    }
    return more;
  }

  // Every combination of the steps, and with `completed` also with as many as fit of one kind.
  void AddAll(const std::vector<std::vector<int>>& steps, size_t kind, std::vector<int>& counts, bool completed) {
    if (kind == steps.size()) {
      found_.insert(counts);
      for (size_t k = 0; completed && k < counts.size(); ++k) {
        const int more = MostMore(counts, k);
        if (more <= 0) continue;
        counts[k] += more;
        found_.insert(counts);
        counts[k] -= more;
      }
      return;
    }
    for (const int number : steps[kind]) {
      counts[kind] = number;
      if (MostMore(counts, kind) < 0) break;
      AddAll(steps, kind + 1, counts, completed);
    }
    counts[kind] = 0;
  }

  // For many kinds: all that fit of the fastest ones, of those with the most power for the money, and of each alone.
  void AddGreedy() {
    std::vector<size_t> order(most_.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    const auto power = [&](size_t k) { return references_.front().power[k]; };
    for (const bool for_money : {false, true}) {
      std::ranges::stable_sort(order, std::greater{},
                               [&](size_t k) { return power(k) / (for_money ? std::max(prices_[k], 1e-9) : 1); });
      std::vector<int> counts(most_.size(), 0);
      for (const size_t k : order) {
        for (int number = 1, more = MostMore(counts, k); number <= more; number = std::min(more + 1, number * 2)) {
          std::vector<int> some = counts;
          some[k] += number;
          found_.insert(some);
        }
        counts[k] += std::max(0, MostMore(counts, k));
        found_.insert(counts);
        std::vector<int> alone(most_.size(), 0);
        alone[k] = std::max(0, MostMore(alone, k));
        found_.insert(alone);
      }
    }
  }

  Figures FiguresFor(const DeviceChoice& choice, double seconds) const {
    Figures figures;
    figures.seconds = seconds;
    figures.throughput = seconds > 0 ? problem_.samples() / seconds : kForever;
    figures.usd_per_hour = choice.usd_per_hour;
    figures.seconds_to_end = samples_ / figures.throughput;
    figures.usd = figures.seconds_to_end / 3600 * choice.usd_per_hour;
    figures.units = figures.least_units = choice.units;
    return figures;
  }

  void AddChoice(const std::vector<int>& counts, std::vector<DeviceChoice>& out) const {
    DeviceChoice choice;
    choice.counts = counts;
    bool priced = true;
    for (size_t k = 0; k < counts.size(); ++k) {
      choice.units += counts[k];
      choice.usd_per_hour += counts[k] * prices_[k];
      priced = priced && (counts[k] == 0 || prices_[k] > 0);
    }
    if (choice.units == 0) return;
    if (!priced) choice.usd_per_hour = 0;
    for (const Reference& reference : references_) {
      double power = 0;
      for (size_t k = 0; k < counts.size(); ++k) power += counts[k] > 0 ? counts[k] * reference.power[k] : 0;
      choice.least_seconds = std::max(choice.least_seconds, (1 - kSlack) * reference.work / power);
    }
    // A plan with these devices takes at least this time. One that leaves some of them out is another choice.
    if (!KeepsAll(bounds_, FiguresFor(choice, choice.least_seconds))) return;
    choice.estimate = Estimate(choice);
    out.push_back(std::move(choice));
  }

  double Estimate(const DeviceChoice& choice) const {
    const std::vector<int> devices = DevicesOf(kinds_, choice);
    std::vector<DeviceProblem::Work> work;
    for (const int d : devices) work.push_back(problem_.WorkOf(0, problem_.layers(), d));
    const double bytes = problem_.WeightBytes(0, problem_.layers());
    const auto link = [&](int a, int b) {
      return problem_.Link(devices[static_cast<size_t>(a)], devices[static_cast<size_t>(b)]);
    };
    double reduces = kForever;
    for (const auto algorithm : {model::AllreduceAlgorithm::kRing, model::AllreduceAlgorithm::kRecursiveDoubling}) {
      reduces = std::min(reduces, model::AllreduceSeconds(algorithm, choice.units, link, bytes));
    }
    return BalancedShares(work).seconds + reduces;
  }

  const DeviceProblem& problem_;
  const DeviceKinds& kinds_;
  const model::Constraints& bounds_;
  const model::Objective objective_;
  const std::vector<Reference> references_;
  const double samples_;
  std::vector<double> prices_;  // by kind
  std::vector<int> most_;       // by kind
  std::set<std::vector<int>> found_;
};

}  // namespace

DeviceKinds KindsOf(const DeviceProblem& problem) {
  DeviceKinds kinds;
  for (int d = 0; d < problem.devices(); ++d) {
    const auto same =
        std::ranges::find_if(kinds.devices, [&](const auto& kind) { return AreAlike(problem, kind.front(), d); });
    if (same != kinds.devices.end()) {
      same->push_back(d);
    } else {
      kinds.devices.push_back({d});
    }
    if (kinds.devices.size() > kMostKinds) return KindsByPool(problem);
  }
  return kinds;
}

DeviceChoices ChoicesOf(const DeviceProblem& problem, const DeviceKinds& kinds, const model::Constraints& bounds,
                        model::Objective objective) {
  return Enumeration(problem, kinds, bounds, objective).Run();
}

std::vector<int> DevicesOf(const DeviceKinds& kinds, const DeviceChoice& choice) {
  std::vector<int> devices;
  for (size_t k = 0; k < choice.counts.size(); ++k) {
    devices.insert(devices.end(), kinds.devices[k].begin(), kinds.devices[k].begin() + choice.counts[k]);
  }
  std::ranges::sort(devices);
  return devices;
}

}  // namespace medley::sched
