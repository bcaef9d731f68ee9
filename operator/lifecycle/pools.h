// The pools that a job may use, with their prices and units.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/lifecycle/status.h"
#include "operator/lifecycle/world.h"
#include "operator/records/plan_request.h"

namespace medley::ops::lifecycle {

class Pass;

struct UsablePools {
  std::vector<PoolView> pools;           // each with a price
  std::map<std::string, double> prices;  // USD per unit-hour, by pool

  const PoolView* Find(std::string_view name) const;
  std::vector<PoolOffer> Offers() const;  // they point into `pools`
  std::map<std::string, int> Units() const;
};

struct PoolChoice {
  UsablePools pools;
  std::optional<Unplanned> refusal;  // which pool is missing or has no price; `pools` is incomplete then
};

// Asks for the pools.
absl::StatusOr<PoolChoice> FindUsablePools(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
