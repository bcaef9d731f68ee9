#include "worker/coordinator/core/ledger.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

TEST(LedgerTest, LastBatchOfADataEpochIsPartial) {
  Ledger ledger = *Ledger::Create(10, 2, 4);
  EXPECT_EQ(ledger.total_steps(), 6);
  EXPECT_EQ(ledger.RangeOf(3), (StepRange{3, 0, 8, 2}));
  EXPECT_EQ(ledger.RangeOf(4), (StepRange{4, 1, 0, 4}));
  EXPECT_EQ(ledger.SamplesAt(3), 10);
  EXPECT_EQ(ledger.SamplesAt(6), 20);
}

TEST(LedgerTest, IntervalsAreFreeLeasedOrDone) {
  Ledger ledger = *Ledger::Create(10, 1, 3);
  for (int i = 0; i < 3; ++i) ledger.Lease();
  ASSERT_THAT(ledger.Commit(1), IsOk());
  const std::vector<SampleInterval> expected = {
      {0, 3, SampleState::kDone}, {3, 9, SampleState::kLeased}, {9, 10, SampleState::kFree}};
  EXPECT_EQ(ledger.Intervals(0), expected);
}

TEST(LedgerTest, RefusesInvalidArguments) {
  EXPECT_THAT(Ledger::Create(0, 1, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Ledger::Create(INT64_MAX, 2, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  Ledger ledger = *Ledger::Create(10, 1, 3);
  EXPECT_THAT(ledger.Commit(1), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(ledger.ResetTo(5), StatusIs(absl::StatusCode::kOutOfRange));
}

// After any sequence of leases, commits and losses, the surviving state contains every sample exactly once.
TEST(LedgerTest, EverySampleOnceUnderRandomLosses) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Rng rng(seed);
    const auto rows = static_cast<int64_t>(1 + rng.Below(60));
    const auto epochs = static_cast<int32_t>(1 + rng.Below(3));
    Ledger ledger = *Ledger::Create(rows, epochs, static_cast<int32_t>(1 + rng.Below(17)));
    std::vector<StepRange> trained;  // the steps in the state that a member would hold
    int losses = 0;
    for (int event = 0; event < 100000 && !ledger.AllCommitted(); ++event) {
      const uint64_t what = rng.Below(20);
      if (what < 9 && !ledger.AllLeased()) {
        trained.push_back(ledger.Lease());
      } else if (what < 18) {
        const int64_t open = ledger.leased() - ledger.committed();
        const auto more = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(open) + 1));
        ASSERT_THAT(ledger.Commit(ledger.committed() + more), IsOk());
      } else if (++losses > 30) {  // bounds the test's duration
        continue;
      } else if (what == 18) {  // a loss: roll back to a step of the survivors
        const auto back = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(ledger.leased()) + 1));
        ASSERT_THAT(ledger.ResetTo(back), IsOk());
        trained.resize(static_cast<size_t>(back));
      } else {  // a restart
        ledger = *Ledger::FromRecord(ledger.ToRecord());
        trained.resize(static_cast<size_t>(ledger.committed()));
      }
    }
    ASSERT_TRUE(ledger.AllCommitted()) << "seed " << seed;
    std::vector<int> counts(static_cast<size_t>(rows * epochs));
    for (const StepRange& step : trained) {
      for (int i = 0; i < step.count; ++i) ++counts[static_cast<size_t>(step.data_epoch * rows + step.first + i)];
    }
    for (int count : counts) ASSERT_EQ(count, 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace medley::worker
