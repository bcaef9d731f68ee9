#include "operator/recommend/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/base/figure.h"

namespace medley::ops::recommend {
namespace {

constexpr double kHour = 3600;
// Sizes are tried one by one; a job that leaves its size open is given no more nodes than this.
constexpr int kMostTried = 4096;

std::string Nodes(int count) { return count == 1 ? "1 node" : fmt::format("{} nodes", count); }

// What is tried on a pool, ascending.
std::vector<int> SizesOn(const Ask& ask, const ForeignJob& job, const PoolSpeed& speed, int free) {
  std::vector<int> sizes = ask.sizes;
  if (sizes.empty() && job.nodes) sizes = {*job.nodes};
  if (sizes.empty()) {
    for (const auto& [nodes, rate] : speed.measured) sizes.push_back(nodes);
    for (int nodes = 1; speed.of_one > 0 && nodes <= std::clamp(free, 1, kMostTried); ++nodes) sizes.push_back(nodes);
  }
  std::erase_if(sizes, [&](int nodes) { return nodes <= 0 || speed.Of(nodes) <= 0; });
  return sizes;
}

// What the choice lacks, and by how much as a factor; empty: nothing.
std::pair<std::string, double> Lacks(const model::Constraints& bounds, const Choice& choice) {
  const std::string where = fmt::format("{} of pool {}", Nodes(choice.nodes), choice.pool);
  if (bounds.min_throughput > choice.throughput) {
    return {fmt::format("min-throughput: {} samples/s are asked for, {} reach {}", base::Figure(bounds.min_throughput),
                        where, base::Figure(choice.throughput)),
            bounds.min_throughput / choice.throughput};
  }
  if (bounds.deadline_seconds > 0 && choice.seconds > bounds.deadline_seconds) {
    return {fmt::format("deadline: {} s are allowed, {} need {} s", base::Figure(bounds.deadline_seconds), where,
                        base::Figure(choice.seconds)),
            choice.seconds / bounds.deadline_seconds};
  }
  if (bounds.budget_usd > 0 && choice.usd > bounds.budget_usd) {
    return {fmt::format("budget-usd: {} USD are allowed, {} cost {} USD", base::Figure(bounds.budget_usd), where,
                        base::Figure(choice.usd)),
            choice.usd / bounds.budget_usd};
  }
  if (bounds.max_cost_per_hour > 0 && choice.usd_per_hour > bounds.max_cost_per_hour) {
    return {fmt::format("max-usd-per-hour: {} USD/h are allowed, {} cost {} USD/h",
                        base::Figure(bounds.max_cost_per_hour), where, base::Figure(choice.usd_per_hour)),
            choice.usd_per_hour / bounds.max_cost_per_hour};
  }
  return {"", 1};
}

// Smaller is better. Sums of money that differ only by rounding are equal.
std::tuple<double, double, int> Rank(model::Objective objective, const Choice& choice) {
  const auto rounded = [](double usd) { return std::round(usd * 1e9) / 1e9; };
  const double usd = choice.usd > 0 ? rounded(choice.usd) : rounded(choice.usd_per_hour);
  if (objective == model::Objective::kTime) return {1 / choice.throughput, usd, choice.nodes};
  if (objective == model::Objective::kCostPerHour) return {rounded(choice.usd_per_hour), usd, choice.nodes};
  return {usd, choice.nodes, choice.nodes};
}

// Why the pool cannot be used at all; empty: it can.
std::string Unusable(const ForeignJob& job, const NodeOffer& offer) {
  if (!offer.unavailable.empty()) return fmt::format("pool {}: {}", offer.name, offer.unavailable);
  if (offer.usd_per_unit_hour <= 0) return fmt::format("pool {}: has no price", offer.name);
  for (const auto& [key, value] : offer.node_selector) {
    const auto own = job.node_selector.find(key);
    if (own != job.node_selector.end() && own->second != value) {
      return fmt::format("pool {}: the job's own nodeSelector asks for {}: {}", offer.name, key, own->second);
    }
  }
  return "";
}

Choice ChoiceOn(const Ask& ask, const NodeOffer& offer, int nodes) {
  Choice choice;
  choice.pool = offer.name;
  choice.nodes = nodes;
  choice.usd_per_hour = nodes * offer.usd_per_unit_hour;
  choice.throughput = ask.speeds.at(offer.name).Of(nodes);
  choice.seconds = ask.samples / choice.throughput;
  choice.usd = choice.seconds / kHour * choice.usd_per_hour;
  choice.node_selector = offer.node_selector;
  choice.tolerations = offer.tolerations;
  return choice;
}

class Search {
 public:
  explicit Search(const Ask& ask) : ask_(ask) {}

  void Try(const ForeignJob& job, const NodeOffer& offer) {
    if (const std::string why = Unusable(job, offer); !why.empty()) return Note(why, kUnusable);
    const std::vector<int> sizes = SizesOn(ask_, job, ask_.speeds.at(offer.name), offer.free);
    if (sizes.empty()) {
      return Note(fmt::format("pool {}: throughput has no samples/s of the sizes that may be chosen", offer.name),
                  kUnusable);
    }
    for (const int nodes : sizes) {
      if (nodes > offer.free) {
        Note(fmt::format("limit of pool {}: {} needed, {} free", offer.name, Nodes(nodes), offer.free), kNotFree);
        break;
      }
      const Choice choice = ChoiceOn(ask_, offer, nodes);
      if (const auto [lack, factor] = Lacks(ask_.bounds, choice); !lack.empty()) {
        Note(lack, factor);
      } else if (!best_ || Rank(ask_.objective, choice) < Rank(ask_.objective, *best_)) {
        best_ = choice;
      }
    }
  }

  Chosen Result() const {
    if (best_) return {best_, ""};
    return {std::nullopt, nearest_.empty() ? "no pool of those named exists and may be used here" : nearest_};
  }

 private:
  // How near: bounds are missed by a factor, which comes before units that are not free and pools that cannot be used.
  static constexpr double kNotFree = 1e12, kUnusable = 1e15;

  void Note(const std::string& why, double distance) {
    if (!nearest_.empty() && distance >= distance_) return;
    nearest_ = why;
    distance_ = distance;
  }

  const Ask& ask_;
  std::optional<Choice> best_;
  std::string nearest_;
  double distance_ = 0;
};

}  // namespace

std::string Choice::InWords() const {
  std::string words = fmt::format("{} of pool {}: {} samples/s, {} USD/h", Nodes(nodes), pool, base::Figure(throughput),
                                  base::Figure(usd_per_hour));
  if (seconds > 0) words += fmt::format(", {} USD in all", base::Figure(usd));
  return words;
}

Chosen Choose(const Ask& ask, const ForeignJob& job, const std::vector<NodeOffer>& offers) {
  if (!ask.sizes.empty() && !job.sizable && ask.sizes != std::vector{job.nodes.value_or(0)}) {
    return {std::nullopt,
            job.kind == ForeignKind::kJob
                ? "annotation medley.dev/units: only an Indexed Job with as many completions as parallelism can change"
                : "annotation medley.dev/units: the number of pods of a JobSet cannot change"};
  }
  Search search(ask);
  for (const std::string& name : ask.pools) {
    const auto offer = std::ranges::find(offers, name, &NodeOffer::name);
    if (offer != offers.end()) search.Try(job, *offer);
  }
  return search.Result();
}

}  // namespace medley::ops::recommend
