#include "worker/model/compute_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace medley::worker {
namespace {

constexpr int64_t kMuchWork = 1'000'000'000;

TEST(ComputeThreadsTest, EveryRowIsComputedOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ComputeThreads pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int64_t rows : {0, 1, 15, 16, 17, 100, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(rows));
      pool.ForEach(rows, kMuchWork, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) ++seen[static_cast<size_t>(row)];
      });
      for (const auto& count : seen) ASSERT_EQ(count, 1) << rows << " rows, " << threads << " threads";
    }
  }
}

TEST(ComputeThreadsTest, LittleWorkIsNotDivided) {
  ComputeThreads pool(4);
  int calls = 0;
  pool.ForEach(1000, 10, [&](int64_t first, int64_t end) {
    ++calls;
    EXPECT_EQ(first, 0);
    EXPECT_EQ(end, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ComputeThreadsTest, AnExceptionReachesTheCallerAndThePoolGoesOn) {
  ComputeThreads pool(3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.ForEach(48, kMuchWork,
                              [&](int64_t first, int64_t) {
                                if (first == 16 * (round % 3)) throw std::runtime_error("failed");
                              }),
                 std::runtime_error);
  }
  std::atomic<int> calls = 0;
  pool.ForEach(48, kMuchWork, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace medley::worker
