// The test device, which can leave out a wait between its streams, finds each that is missing. Not for the build with
// CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/aten/staged_steps.h"
#include "worker/aten/testing/tested_device.h"
#include "worker/device/testing/guarded_memory.h"

namespace medley::worker::aten {
namespace {

using base::IsOk;
using device::GuardedMemory;

// Each wait of a step, for a copy and of a copy for what was computed before, is needed.
TEST(StagedRowsOrderTest, AWaitThatIsLeftOutIsFound) {
  const auto tested = *OpenTestedDevice();
  const Place place(tested);
  GuardedMemory& memory = GuardedMemory::OfProcess();
  constexpr int64_t kGrown = 8;  // before, buffers are made, and what they waited for is of no use yet
  memory.ResetStreams(1);
  int64_t waits = 0;
  {
    StagedRows staged(tested, place, {kStagedColumns});
    ASSERT_THAT(StagedSteps(1, kGrown, 1, staged, place), IsOk());
    const int64_t before = memory.waits();
    ASSERT_THAT(StagedSteps(kGrown, kGrown + 4, 1, staged, place), IsOk());
    waits = memory.waits() - before;
  }
  ASSERT_GE(waits, 8) << "of four steps";
  for (int64_t number = 1; number <= waits; ++number) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      memory.ResetStreams(seed);
      StagedRows staged(tested, place, {kStagedColumns});
      ASSERT_THAT(StagedSteps(1, kGrown, 1, staged, place), IsOk());
      memory.ResetStreams(seed, number);
      const absl::Status status = StagedSteps(kGrown, kGrown + 4, 1, staged, place);
      wrong += status.ok() ? 0 : 1;
      memory.ResetStreams(seed);
    }
    EXPECT_EQ(wrong, 10) << "wait " << number << " of " << waits << " is left out, and not every seed shows it";
  }
}

}  // namespace
}  // namespace medley::worker::aten
