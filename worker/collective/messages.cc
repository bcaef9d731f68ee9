#include "worker/collective/messages.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {

void Messages::Combine(std::span<float> to, std::span<const float> values) { AddTo(to, values); }

Team::Team(Messages& all, std::span<const int> ranks) : all_(all), ranks_(ranks) {
  const auto found = std::find(ranks.begin(), ranks.end(), all.rank());
  MEDLEY_CHECK(found != ranks.end(), "a team without the own rank");
  rank_ = static_cast<int>(found - ranks.begin());
}

}  // namespace medley::worker
