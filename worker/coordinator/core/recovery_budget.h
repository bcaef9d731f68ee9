// Bounds the recoveries of a job that trains no further, whatever interrupts it. Pure; not thread-safe.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "medley/job/v1/journal.pb.h"

namespace medley::worker {

// Two counts, because a job can stand still in two ways:
// - in a row: no step is committed between two interruptions. A committed step or a new plan begins this count again.
// - at one place: steps are committed, but never one that was not committed before, because every interruption costs as
//   many steps as were trained since the one before it. Only a step further than ever begins this count again.
//
// What others do to a job (a lost member, a broken session) weighs less than a fault of its own, because several
// members may be lost one after another without any relation to what the job does.
class RecoveryBudget {
 public:
  enum class Weight { kLoss, kFault };

  // `max_faults`: the most faults in a row, >= 1. The other bounds are multiples of it.
  explicit RecoveryBudget(int max_faults) : max_faults_(max_faults) {}

  void Interrupted(Weight weight);
  void Committed(int64_t step);
  void NewPlan();
  void NewAttempt();  // the operator starts the job again, which has a bound of its own

  // What survives a restart of the coordinator; the restart itself is an interruption.
  job::v1::RecoveryRecord ToRecord() const;
  void Restore(const job::v1::RecoveryRecord& record);

  bool spent() const;
  // In a row or at one place, whichever bound is spent, for messages.
  int interruptions() const;
  int64_t furthest_step() const { return furthest_step_; }  // the highest ever committed

  // Before the next attempt: none after the first interruption in a row, then `first`, doubled up to 30 s. At one place
  // it grows a quarter as fast.
  base::nanoseconds Pause(base::nanoseconds first) const;

 private:
  int max_faults_;
  int row_ = 0;         // interruptions in a row
  int row_weight_ = 0;  // their weight
  int place_ = 0;       // interruptions since the job got further than ever
  int place_weight_ = 0;
  int64_t furthest_step_ = 0;
};

}  // namespace medley::worker
