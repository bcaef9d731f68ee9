// Handing the job over to another coordinator, and taking it over (docs/adr/0015-the-coordinator-moves.md).
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"

namespace medley::worker {

struct HandOverState {
  std::optional<job::v1::HandOverRequest> successor;
  bool handed_over = false;
  // The job was handed over to this coordinator between two steps: it trains on as soon as all members have come. Only
  // in Mode::kHalting.
  std::optional<job::v1::HandedOver> adopting;
  base::SteadyTime adopt_deadline{};
};

}  // namespace medley::worker
