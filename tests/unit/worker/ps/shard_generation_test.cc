// Tests ShardGeneration without the network.
#include "worker/ps/shard_generation.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr int kTestTable = 3;
constexpr base::SteadyTime kNow{base::seconds(1000)};
constexpr base::SteadyTime kNever = base::SteadyTime::max();

std::shared_ptr<RowStore> MakeTestStore() {
  const ParameterSpec spec{.operation = kTestTable, .name = "table", .rows = 1000, .columns = 4, .sparse = true};
  return std::make_shared<RowStore>(std::vector{spec}, Optimizer{.learning_rate = 0.1f}, 7);
}

std::vector<Gradients> SomeGradients() { return {Gradients::Of(kTestTable, {1}, {1, 1, 1, 1})}; }

std::vector<float> ReadRows(RowStore& store, const std::vector<uint64_t>& keys) {
  std::vector<float> rows(keys.size() * 4);
  EXPECT_THAT(store.Read(kTestTable, keys, rows), IsOk());
  return rows;
}

// A pull and how often and with what it was answered.
struct TestPull {
  TestPull(ShardGeneration& generation, int64_t step, base::SteadyTime deadline = kNever) {
    number = generation.Pull(step, kNow, deadline, [this](absl::Status with) {
      ++answers;
      status = std::move(with);
    });
  }
  int64_t number = 0;
  int answers = 0;
  std::optional<absl::Status> status;
};

TEST(ShardGenerationTest, AStepIsAppliedWhenAllHavePushedAndItIsLeased) {
  auto store = MakeTestStore();
  std::vector<int64_t> applied;
  ShardGeneration generation(
      {.generation = 1, .trainers = 2, .on_applied = [&](int64_t step) { applied.push_back(step); }}, store);
  ASSERT_THAT(generation.Push(1, 1, SomeGradients(), 8), IsOk());
  ASSERT_THAT(generation.Push(1, 1, SomeGradients(), 8), IsOk());  // a repeated push counts once
  EXPECT_EQ(store->AppliedStep(), 0);
  ASSERT_THAT(generation.Push(1, 0, {}, 8), IsOk());
  EXPECT_EQ(store->AppliedStep(), 0);  // not leased yet
  ASSERT_THAT(generation.Allow(1), IsOk());
  EXPECT_EQ(store->AppliedStep(), 1);
  EXPECT_EQ(store->StateSamples(), 8);
  ASSERT_THAT(generation.Push(1, 0, {}, 8), IsOk());  // a retry after a lost response
  EXPECT_EQ(store->AppliedStep(), 1);
  EXPECT_THAT(generation.Push(3, 0, {}, 8), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(generation.Push(2, 2, {}, 8), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(applied, std::vector<int64_t>{1});
}

TEST(ShardGenerationTest, TheOrderOfArrivalDoesNotChangeASingleBit) {
  std::vector<std::vector<float>> results;
  for (const bool reversed : {false, true}) {
    auto store = MakeTestStore();
    ShardGeneration generation({.generation = 1, .trainers = 3}, store);
    ASSERT_THAT(generation.Allow(1), IsOk());
    for (int i = 0; i < 3; ++i) {
      const int trainer = reversed ? 2 - i : i;
      base::Rng rng(static_cast<uint64_t>(trainer));
      std::vector<float> values;
      for (int v = 0; v < 12; ++v) values.push_back(static_cast<float>(rng.Uniform(-1, 1)));
      ASSERT_THAT(generation.Push(1, trainer, {Gradients::Of(kTestTable, {1, 2, 3}, std::move(values))}, 8), IsOk());
    }
    results.push_back(ReadRows(*store, {1, 2, 3}));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(ShardGenerationTest, APushInPartsCountsWhenTheLastPartArrives) {
  std::vector<std::vector<float>> results;
  for (const bool divided : {false, true}) {
    auto store = MakeTestStore();
    ShardGeneration generation({.generation = 1, .trainers = 2}, store);
    ASSERT_THAT(generation.Allow(1), IsOk());
    const Gradients first = Gradients::Of(kTestTable, {1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const Gradients second = Gradients::Of(kTestTable, {9}, {4, 3, 2, 1});
    if (divided) {  // the last part arrives first, and one twice
      ASSERT_THAT(generation.Push(1, 0, {second}, 8, {1, 2}), IsOk());
      ASSERT_THAT(generation.Push(1, 1, SomeGradients(), 8), IsOk());
      ASSERT_THAT(generation.Push(1, 0, {second}, 8, {1, 2}), IsOk());
      EXPECT_EQ(store->AppliedStep(), 0);
      EXPECT_THAT(generation.Push(1, 0, {first}, 8, {0, 3}), StatusIs(absl::StatusCode::kInvalidArgument));
      EXPECT_THAT(generation.Push(1, 0, {first}, 8, {2, 2}), StatusIs(absl::StatusCode::kInvalidArgument));
      ASSERT_THAT(generation.Push(1, 0, {first}, 8, {0, 2}), IsOk());
    } else {
      ASSERT_THAT(generation.Push(1, 0, {first, second}, 8), IsOk());
      ASSERT_THAT(generation.Push(1, 1, SomeGradients(), 8), IsOk());
    }
    EXPECT_EQ(store->AppliedStep(), 1);
    results.push_back(ReadRows(*store, {1, 2, 9}));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(ShardGenerationTest, APullWaitsForItsStepOnly) {
  ShardGeneration generation({.generation = 1}, MakeTestStore());
  const TestPull first(generation, 1), second(generation, 2), third(generation, 3);
  EXPECT_EQ(first.number, 0);
  EXPECT_THAT(*first.status, IsOk());
  EXPECT_FALSE(second.status.has_value());
  ASSERT_THAT(generation.Push(1, 0, {}, 8), IsOk());
  EXPECT_FALSE(second.status.has_value()) << "the step is not leased yet";
  ASSERT_THAT(generation.Allow(2), IsOk());
  ASSERT_TRUE(second.status.has_value());
  EXPECT_THAT(*second.status, IsOk());
  EXPECT_FALSE(third.status.has_value());
  ShardGeneration::Answers later;
  ASSERT_THAT(generation.Push(2, 0, {}, 8, {}, &later), IsOk());
  EXPECT_FALSE(third.status.has_value()) << "left to the caller";
  ShardGeneration::Call(std::move(later));
  EXPECT_THAT(*third.status, IsOk());
  const TestPull late(generation, 2);
  EXPECT_THAT(*late.status, StatusIs(absl::StatusCode::kFailedPrecondition));
  for (const TestPull* pull : {&first, &second, &third, &late}) EXPECT_EQ(pull->answers, 1);
}

TEST(ShardGenerationTest, APullEndsAtItsDeadline) {
  ShardGeneration generation({.generation = 1, .wait = base::seconds(60)}, MakeTestStore());
  const TestPull own(generation, 2, kNow + base::seconds(5)), bounded(generation, 2);
  generation.Expire(kNow + base::seconds(4));
  EXPECT_FALSE(own.status.has_value());
  generation.Expire(kNow + base::seconds(5));
  ASSERT_TRUE(own.status.has_value());
  EXPECT_THAT(*own.status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                    "step 1 was not applied in time, the shard has applied step 0"));
  EXPECT_FALSE(bounded.status.has_value());
  generation.Expire(kNow + base::seconds(60));
  EXPECT_THAT(*bounded.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  generation.Close();
  EXPECT_EQ(own.answers, 1);
}

TEST(ShardGenerationTest, CancelAndCloseEndPullsOnce) {
  ShardGeneration generation({.generation = 1}, MakeTestStore());
  const TestPull cancelled(generation, 2), closed(generation, 2);
  generation.Cancel(cancelled.number);
  generation.Cancel(cancelled.number);
  EXPECT_THAT(*cancelled.status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(closed.status.has_value());
  generation.Close();
  EXPECT_THAT(*closed.status, StatusIs(absl::StatusCode::kAborted));
  const TestPull after(generation, 1);
  EXPECT_THAT(*after.status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(generation.Push(1, 0, {}, 1), StatusIs(absl::StatusCode::kAborted));
  for (const TestPull* pull : {&cancelled, &closed, &after}) EXPECT_EQ(pull->answers, 1);
}

}  // namespace
}  // namespace medley::worker
