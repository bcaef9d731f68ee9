#include "worker/pipeline/schedule.h"

#include <algorithm>

namespace medley::worker {

std::vector<Action> StageActions(model::ScheduleKind kind, int stage, int stages, int micro_batches) {
  const bool gpipe = kind == model::ScheduleKind::kGpipe;
  const int warm_up = gpipe ? micro_batches : std::min(stages - stage - 1, micro_batches);
  std::vector<Action> actions;
  for (int micro = 0; micro < warm_up; ++micro) actions.push_back({Action::Kind::kForward, micro});
  for (int micro = warm_up; micro < micro_batches; ++micro) {
    actions.push_back({Action::Kind::kForward, micro});
    actions.push_back({Action::Kind::kBackward, micro - warm_up});
  }
  for (int micro = micro_batches - warm_up; micro < micro_batches; ++micro) {
    actions.push_back({Action::Kind::kBackward, micro});
  }
  return actions;
}

}  // namespace medley::worker
