// Uniform Progress over several zones: the published policies that Medley's is compared with.
//
// Uniform Progress (Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI '24) keeps the
// work that is done above the line from nothing at the start to all at the deadline: it runs on spot units while it
// can, takes on-demand units while it is behind the line and no spot units can be had, and goes back to spot units
// only when it is ahead by two starts. When only on-demand units can still finish in time, it ends on them. SkyNomad
// (Li et al., NSDI '27) compares itself with three forms of it for several zones, which differ in where they ask for
// spot units:
//
//   kCheapest    the cheapest first, and the region that took units away last (UP(S))
//   kAvailable   where most of the last five requests, probes and looks were met (UP(A)); a probe every two hours
//   kCostRatio   the most met requests per USD (UP(AP)); a probe every hour
//
// Implemented from these descriptions; the published costs are those of the authors' simulator.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "cli/traces/world.h"

namespace medley::cli::traces {

enum class ZoneOrder { kCheapest, kAvailable, kCostRatio };

class UniformProgressPolicy final : public Policy {
 public:
  explicit UniformProgressPolicy(ZoneOrder order) : order_(order) {}
  Step Decide(const View& view) override;
  std::vector<size_t> Probes(const View& view) override;
  void See(size_t zone, double hours, bool up, Source source) override;

 private:
  enum class Wanted { kNothing, kSpot, kOnDemand };
  Wanted WantedUnits(const View& view, Runs runs, bool has_spot);
  Step AskZones(const View& view);
  std::vector<size_t> Ranked(const View& view) const;
  double Every() const;  // hours between two looks at a zone, in whole ticks
  double Score(const View& view, size_t zone) const;
  double ShareMet(size_t zone) const;
  void Count(size_t zone, bool met);

  const ZoneOrder order_;
  bool ends_on_demand_ = false;
  bool leaves_on_demand_ = false;  // though so little time is left that it would else stay
  std::optional<size_t> last_zone_;
  std::vector<std::deque<bool>> met_;  // of each zone
  std::vector<double> next_look_;      // hours; at the zone with units
  std::vector<double> next_probe_;     // hours; of other zones
  double tick_hours_ = 0;
  bool asks_ = false;                // for spot units in this step, or has them
  std::optional<size_t> main_zone_;  // with spot units
};

}  // namespace medley::cli::traces
