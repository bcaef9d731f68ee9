#include "scheduler-service/handlers/result_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace medley::sched {
namespace {

TEST(ResultCacheTest, FindsTheSameBytesOfTheSameKindAndInputVersion) {
  metrics::Registry metrics;
  ResultCache cache(1 << 20, metrics);
  cache.Insert("Plan", "question", {1, 0}, "answer");
  ASSERT_NE(cache.Find("Plan", "question", {1, 0}), nullptr);
  EXPECT_EQ(*cache.Find("Plan", "question", {1, 0}), "answer");
  EXPECT_EQ(cache.Find("Plan", "question ", {1, 0}), nullptr);
  EXPECT_EQ(cache.Find("Pareto", "question", {1, 0}), nullptr);
  cache.Insert("Plan", "question", {1, 0}, "another");
  EXPECT_EQ(*cache.Find("Plan", "question", {1, 0}), "another");
  // Entries for older prices or corrections are removed.
  EXPECT_EQ(cache.Find("Plan", "question", {2, 0}), nullptr);
  EXPECT_EQ(cache.Find("Plan", "question", {1, 0}), nullptr);
  cache.Insert("Plan", "question", {2, 0}, "new");
  EXPECT_EQ(cache.Find("Plan", "question", {2, 1}), nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ResultCacheTest, IsBoundedByBytesAndEvictsTheLeastRecentlyUsed) {
  metrics::Registry metrics;
  constexpr size_t kBytes = 64 << 10;
  ResultCache cache(kBytes, metrics);
  const std::string answer(3000, 'a');
  for (int i = 0; i < 200; ++i) {
    cache.Insert("Plan", std::to_string(i), {1, 0}, answer);
    EXPECT_LE(cache.bytes(), kBytes);
    EXPECT_NE(cache.Find("Plan", "0", {1, 0}), nullptr);  // not evicted, because it is used in every iteration
  }
  EXPECT_EQ(cache.Find("Plan", "1", {1, 0}), nullptr);
  EXPECT_NE(cache.Find("Plan", "199", {1, 0}), nullptr);
  const size_t before = cache.bytes();
  cache.Insert("Plan", "large", {1, 0}, std::string(kBytes / 4, 'a'));
  EXPECT_EQ(cache.Find("Plan", "large", {1, 0}), nullptr);
  EXPECT_EQ(cache.bytes(), before);
}

TEST(ResultCacheTest, SizeZeroDisablesIt) {
  metrics::Registry metrics;
  ResultCache cache(0, metrics);
  cache.Insert("Plan", "question", {1, 0}, "");
  EXPECT_EQ(cache.Find("Plan", "question", {1, 0}), nullptr);
}

TEST(ResultCacheTest, ManyThreads) {
  metrics::Registry metrics;
  ResultCache cache(32 << 10, metrics);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string question = std::to_string((i * (t + 1)) % 97);
        const InputVersion input_version{i / 500, 0};
        if (const auto kept = cache.Find("Plan", question, input_version)) {
          EXPECT_EQ(*kept, question + "!");
        } else {
          cache.Insert("Plan", question, input_version, question + "!");
        }
      }
    });
  }
}

}  // namespace
}  // namespace medley::sched
