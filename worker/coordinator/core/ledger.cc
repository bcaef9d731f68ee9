#include "worker/coordinator/core/ledger.h"

#include <algorithm>
#include <limits>

#include "common/base/status.h"

namespace medley::worker {

Ledger::Ledger(int64_t rows, int32_t epochs, int32_t batch_size)
    : rows_(rows), epochs_(epochs), batch_size_(batch_size), steps_per_epoch_((rows - 1) / batch_size + 1) {}

absl::StatusOr<Ledger> Ledger::Create(int64_t rows, int32_t epochs, int32_t batch_size) {
  if (rows <= 0 || epochs <= 0 || batch_size <= 0) {
    return base::InvalidArgument("a ledger needs rows, epochs and a batch size above 0, not {}, {} and {}", rows,
                                 epochs, batch_size);
  }
  if (rows > std::numeric_limits<int64_t>::max() / epochs) {
    return base::InvalidArgument("a ledger of {} rows x {} epochs has more samples than it can count", rows, epochs);
  }
  return Ledger(rows, epochs, batch_size);
}

absl::StatusOr<Ledger> Ledger::FromRecord(const job::v1::LedgerRecord& record) {
  MEDLEY_ASSIGN_OR_RETURN(Ledger ledger, Create(record.rows(), record.epochs(), record.batch_size()));
  MEDLEY_RETURN_IF_ERROR(ledger.ResetTo(record.committed_step()));
  return ledger;
}

job::v1::LedgerRecord Ledger::ToRecord() const {
  job::v1::LedgerRecord record;
  record.set_rows(rows_);
  record.set_epochs(epochs_);
  record.set_batch_size(batch_size_);
  record.set_committed_step(committed_);
  return record;
}

StepRange Ledger::RangeOf(int64_t step) const {
  MEDLEY_CHECK(step >= 1 && step <= total_steps(),
               fmt::format("the ledger has no step {}, its last one is {}", step, total_steps()));
  StepRange range;
  range.step = step;
  range.data_epoch = static_cast<int32_t>((step - 1) / steps_per_epoch_);
  range.first = (step - 1) % steps_per_epoch_ * batch_size_;
  range.count = static_cast<int32_t>(std::min<int64_t>(batch_size_, rows_ - range.first));
  return range;
}

int64_t Ledger::SamplesAt(int64_t step) const {
  MEDLEY_CHECK(step >= 0 && step <= total_steps(),
               fmt::format("the ledger has no step {}, its last one is {}", step, total_steps()));
  if (step == 0) return 0;
  const StepRange last = RangeOf(step);
  return last.data_epoch * rows_ + last.first + last.count;
}

std::vector<SampleInterval> Ledger::Intervals(int32_t data_epoch) const {
  const int64_t start = data_epoch * rows_;
  const auto within = [&](int64_t samples) { return std::clamp<int64_t>(samples - start, 0, rows_); };
  const int64_t done = within(SamplesAt(committed_));
  const int64_t leased = within(SamplesAt(leased_));
  std::vector<SampleInterval> intervals;
  const auto add = [&](int64_t first, int64_t end, SampleState state) {
    if (first < end) intervals.push_back({first, end, state});
  };
  add(0, done, SampleState::kDone);
  add(done, leased, SampleState::kLeased);
  add(leased, rows_, SampleState::kFree);
  return intervals;
}

StepRange Ledger::Lease() {
  MEDLEY_CHECK(!AllLeased(), "every step is already leased");
  return RangeOf(++leased_);
}

absl::Status Ledger::Commit(int64_t step) {
  if (step < committed_ || step > leased_) {
    return base::OutOfRange("step {} cannot be committed: steps up to {} are committed and up to {} leased", step,
                            committed_, leased_);
  }
  committed_ = step;
  return absl::OkStatus();
}

absl::Status Ledger::ResetTo(int64_t step) {
  if (step < 0 || step > total_steps()) {
    return base::OutOfRange("the ledger has {} steps, so it cannot be reset to step {}", total_steps(), step);
  }
  committed_ = leased_ = step;
  return absl::OkStatus();
}

}  // namespace medley::worker
