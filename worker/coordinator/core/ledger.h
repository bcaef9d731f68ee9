// Records which samples of every data epoch are free, leased or done.
//
// Step k (1-based) trains a fixed range of its data epoch's permutation: batch_size samples, or what is left in the
// last step of a data epoch. Steps are leased, committed and rolled back in order, so two numbers describe the state:
//
//   data epoch 0            data epoch 1
//   [ done ... done | leased . . | free ... free ]
//              committed^   leased^
//
// Exactly once: every sample of every data epoch lies in exactly one step, and the surviving state contains exactly the
// steps up to `committed`. A value; not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "medley/job/v1/journal.pb.h"

namespace medley::worker {

// One global batch: samples [first, first + count) of the data epoch's permutation.
struct StepRange {
  int64_t step = 0;
  int32_t data_epoch = 0;
  int64_t first = 0;
  int32_t count = 0;
  bool operator==(const StepRange&) const = default;
};

enum class SampleState { kDone, kLeased, kFree };

// Samples [first, end) of a data epoch.
struct SampleInterval {
  int64_t first = 0;
  int64_t end = 0;
  SampleState state = SampleState::kFree;
  bool operator==(const SampleInterval&) const = default;
};

class Ledger {
 public:
  // Errors: InvalidArgument unless rows, epochs and batch_size are positive and rows x epochs fits.
  static absl::StatusOr<Ledger> Create(int64_t rows, int32_t epochs, int32_t batch_size);
  static absl::StatusOr<Ledger> FromRecord(const job::v1::LedgerRecord& record);
  job::v1::LedgerRecord ToRecord() const;

  int64_t rows() const { return rows_; }
  int32_t epochs() const { return epochs_; }
  int32_t batch_size() const { return batch_size_; }
  int64_t committed() const { return committed_; }
  int64_t leased() const { return leased_; }  // highest leased step, >= committed
  int64_t total_steps() const { return steps_per_epoch_ * epochs_; }
  int64_t total_samples() const { return rows_ * epochs_; }
  bool AllLeased() const { return leased_ == total_steps(); }
  bool AllCommitted() const { return committed_ == total_steps(); }

  // 1 <= step <= total_steps.
  StepRange RangeOf(int64_t step) const;
  // Number of samples in a state that has applied `step`, 0 <= step <= total_steps.
  int64_t SamplesAt(int64_t step) const;
  // The intervals of a data epoch in order. They cover [0, rows), and adjacent ones differ in state.
  std::vector<SampleInterval> Intervals(int32_t data_epoch) const;

  // Leases the next step. Precondition: !AllLeased().
  StepRange Lease();
  // Records that every member has applied all steps up to `step`. Errors: OutOfRange unless committed <= step <=
  // leased.
  absl::Status Commit(int64_t step);
  // After a rollback or restore to `step`: the samples of later steps are free, all others done. Errors: OutOfRange.
  absl::Status ResetTo(int64_t step);

 private:
  Ledger(int64_t rows, int32_t epochs, int32_t batch_size);

  int64_t rows_;
  int32_t epochs_;
  int32_t batch_size_;
  int64_t steps_per_epoch_;
  int64_t committed_ = 0;
  int64_t leased_ = 0;
};

}  // namespace medley::worker
