// What a trainer that computes on a device reports of its embedding tables with each step.
//
// One thread at a time.
#pragma once

#include "medley/job/v1/coordinator.pb.h"
#include "worker/trainer/trainer_state.h"

namespace medley::worker {

class TableReport {
 public:
  // Fills in what has changed since the last call for this state. Nothing where no block on a device has tables.
  void Fill(const TrainerState& state, job::v1::Progress& progress);

 private:
  const TrainerState* of_ = nullptr;  // only compared
  TableCounts counted_;
};

}  // namespace medley::worker
