#include "tests/unit/worker/aten/device_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "common/base/testing/status_matchers.h"
#include "worker/device/testing/guarded_memory.h"

namespace medley::worker::aten {

using base::IsOk;
using base::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A thread of autograd frees the last part of a step later: the least of some steps counts.
void ExpectNoGrowth(const std::function<absl::Status(int64_t step)>& step) {
  const auto least = [&](int64_t first, int64_t end) {
    size_t used = std::numeric_limits<size_t>::max();
    for (int64_t number = first; number < end; ++number) {
      EXPECT_THAT(step(number), IsOk());
      used = std::min(used, device::GuardedMemory::OfProcess().used());
    }
    return used;
  };
  least(1, 9);
  const size_t before = least(9, 19);
  EXPECT_LE(least(19, 29), before);
}

void ExpectFailedAllocationsAreSentences(const std::function<absl::Status()>& run) {
  device::GuardedMemory& memory = device::GuardedMemory::OfProcess();
  int64_t failed = 0;
  for (int64_t number = 1;; ++number) {
    ASSERT_LT(number, 10'000);
    const int64_t before = memory.allocations();
    memory.FailAllocation(number);
    const absl::Status status = run();
    memory.FailAllocation(0);
    if (status.ok()) {
      EXPECT_LT(memory.allocations() - before, number) << "an allocation that failed was not noticed";
      break;
    }
    ++failed;
    ASSERT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("Tried to allocate "), HasSubstr(" bytes"), HasSubstr("training.batchSize"))))
        << "allocation " << number;
  }
  std::printf("%ld allocations failed, one in each run\n", static_cast<long>(failed));
  EXPECT_GT(failed, 50);
}

}  // namespace medley::worker::aten
