#include "worker/coordinator/core/recovery_budget.h"

#include <algorithm>

namespace medley::worker {
namespace {

constexpr int kFaultWeight = 5;
constexpr int kLossWeight = 2;
constexpr int kPlaceFactor = 8;  // more interruptions are allowed while steps are committed at all
constexpr base::nanoseconds kMaxPause = base::seconds(30);

}  // namespace

void RecoveryBudget::Interrupted(Weight weight) {
  const int points = weight == Weight::kFault ? kFaultWeight : kLossWeight;
  ++row_;
  ++place_;
  row_weight_ += points;
  place_weight_ += points;
}

void RecoveryBudget::Committed(int64_t step) {
  row_ = row_weight_ = 0;
  if (step <= furthest_step_) return;
  furthest_step_ = step;
  place_ = place_weight_ = 0;
}

// A job that keeps getting new plans but trains no further is bounded by the second count.
void RecoveryBudget::NewPlan() { row_ = row_weight_ = 0; }

void RecoveryBudget::NewAttempt() { row_ = row_weight_ = place_ = place_weight_ = 0; }

job::v1::RecoveryRecord RecoveryBudget::ToRecord() const {
  job::v1::RecoveryRecord record;
  record.set_furthest_step(furthest_step_);
  record.set_interruptions_in_a_row(row_);
  record.set_weight_in_a_row(row_weight_);
  record.set_interruptions(place_);
  record.set_weight(place_weight_);
  return record;
}

void RecoveryBudget::Restore(const job::v1::RecoveryRecord& record) {
  furthest_step_ = record.furthest_step();
  row_ = record.interruptions_in_a_row();
  row_weight_ = record.weight_in_a_row();
  place_ = record.interruptions();
  place_weight_ = record.weight();
}

bool RecoveryBudget::spent() const {
  const int most = max_faults_ * kFaultWeight;
  return row_weight_ > most || place_weight_ > kPlaceFactor * most;
}

int RecoveryBudget::interruptions() const { return row_weight_ > max_faults_ * kFaultWeight ? row_ : place_; }

base::nanoseconds RecoveryBudget::Pause(base::nanoseconds first) const {
  const int attempts = std::max(row_, place_ / 4);
  if (attempts < 2) return base::nanoseconds(0);
  return std::min(first * (int64_t{1} << std::min(attempts - 2, 10)), kMaxPause);
}

}  // namespace medley::worker
