// All that the coordinator knows of its job, a part for each concern. A value; not thread-safe.
//
// Each part is defined in the header of its concern, whose functions alone change it.
#pragma once

#include <utility>

#include "worker/coordinator/core/checkpoints.h"
#include "worker/coordinator/core/choices.h"
#include "worker/coordinator/core/data_check.h"
#include "worker/coordinator/core/ending.h"
#include "worker/coordinator/core/evaluations.h"
#include "worker/coordinator/core/exported_model.h"
#include "worker/coordinator/core/generations.h"
#include "worker/coordinator/core/hand_over.h"
#include "worker/coordinator/core/members.h"
#include "worker/coordinator/core/meter.h"
#include "worker/coordinator/core/options.h"
#include "worker/coordinator/core/plans.h"
#include "worker/coordinator/core/rebuilding.h"
#include "worker/coordinator/core/recovery.h"
#include "worker/coordinator/core/restoring.h"
#include "worker/coordinator/core/standing_by.h"
#include "worker/coordinator/core/switches.h"
#include "worker/coordinator/core/training.h"

namespace medley::worker {

struct CoreState {
  CoreState(CoreOptions given, base::SteadyTime now)
      : options(std::move(given)),
        recovery(options.max_fruitless),
        evaluation(options.evaluation),
        standing_by(options) {
    recovery.waiting_since = training.committed_at = checkpoints.started_at = now;
  }

  const CoreOptions options;
  MembersState members;
  PlansState plans;
  GenerationsState generations;
  SwitchesState switches;
  RecoveryState recovery;
  TrainingState training;
  CheckpointsState checkpoints;
  RestoringState restoring;
  RebuildingState rebuilding;
  EvaluationState evaluation;
  BestState best;
  EndingState ending;
  HandOverState hand_over;
  StandingByState standing_by;
  DataState data;
  Meters meters;
};

}  // namespace medley::worker
