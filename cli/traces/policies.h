// Policies on recorded capacity: Medley's own, and those that it is compared with.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/traces/world.h"
#include "operator/spot/decide.h"

namespace medley::cli::traces {

// Calls the operator's own decision (operator/spot) with what it has seen of the zones so far.
class MedleyPolicy final : public Policy {
 public:
  explicit MedleyPolicy(const ops::spot::Prior& prior = {}) : prior_(prior) {}
  Step Decide(const View& view) override;
  void See(size_t zone, double hours, bool up, Source source) override;

 private:
  void Refresh(const View& view);
  const ops::spot::Prior prior_;
  std::vector<ops::spot::ZoneRecord> records_;
  std::optional<ops::spot::CostTable> table_;
};

// Spot units of the zone that was cheapest at the start: when they are lost, it waits for them.
class FirstPlanPolicy final : public Policy {
 public:
  Step Decide(const View& view) override;

 private:
  std::optional<size_t> zone_;
};

// The cheapest units that can be had now, spot or on demand, and a move whenever others are cheaper.
class CheapestNowPolicy final : public Policy {
 public:
  Step Decide(const View& view) override;
};

class OnDemandPolicy final : public Policy {
 public:
  Step Decide(const View& view) override;
};

// The zone where on-demand units finish the work for the least, moving there included.
size_t CheapestOnDemandZone(const View& view);
// True when nothing but on-demand units, started now, finishes in time if what runs is lost in this tick.
bool IsLastMoment(const View& view);

}  // namespace medley::cli::traces
