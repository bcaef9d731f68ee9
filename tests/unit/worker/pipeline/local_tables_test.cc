#include "worker/pipeline/local_tables.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {
namespace {

ParameterSpec Spec() {
  return {.operation = 2,
          .name = "table",
          .rows = 50,
          .columns = 3,
          .sparse = true,
          .initializer = Initializer::kUniform,
          .scale = 0.1F};
}

class LocalTablesTest : public ::testing::Test {
 protected:
  const Optimizer optimizer_ = *MakeOptimizer("adagrad", 0.1);
  LocalTables tables_{{Spec()}, optimizer_, 9};
  const std::vector<TableKeys> keys_ = {{2, 3, {4, 7}}};
  const std::vector<float> gradient_ = {1, 2, 3, -1, -2, -3};

  std::vector<float> Pull(int64_t step) {
    std::vector<std::vector<float>> rows;
    EXPECT_EQ(base::ToString(tables_.Pull(step, keys_, rows, {})), "OK");
    return rows[0];
  }
  absl::Status Push(int64_t step) {
    const std::vector<std::span<const float>> gradients = {gradient_};
    return tables_.Push(step, keys_, gradients, 8, {});
  }
};

TEST_F(LocalTablesTest, RowsStartFromTheSeedAndFollowTheOptimizer) {
  std::vector<float> expected(6);
  InitializeRow(Spec(), 9, 4, std::span(expected).first(3));
  InitializeRow(Spec(), 9, 7, std::span(expected).last(3));
  EXPECT_EQ(Pull(1), expected);
  ASSERT_TRUE(Push(1).ok());
  std::vector<float> state(6);
  Apply(optimizer_, expected, state, gradient_);
  EXPECT_EQ(Pull(2), expected);
  EXPECT_EQ(tables_.AppliedStep(), 1);
}

TEST_F(LocalTablesTest, UndoesOneStep) {
  ASSERT_TRUE(Push(1).ok());
  const std::vector<float> one = Pull(2);
  ASSERT_TRUE(Push(2).ok());
  EXPECT_NE(Pull(3), one);
  ASSERT_TRUE(tables_.UndoTo(1).ok());
  EXPECT_EQ(Pull(2), one);
  EXPECT_EQ(tables_.UndoTo(0).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Push(2).ok());
}

TEST_F(LocalTablesTest, KeepsTheRowsOfEarlierSteps) {
  LocalTables tables({Spec()}, optimizer_, 9, 3);
  const auto rows = [&](int64_t step, const std::vector<uint64_t>& keys) {
    std::vector<std::vector<float>> pulled;
    const std::vector<TableKeys> wanted = {{2, 3, keys}};
    EXPECT_EQ(base::ToString(tables.Pull(step, wanted, pulled, {})), "OK");
    return pulled[0];
  };
  const auto push = [&](int64_t step, const std::vector<uint64_t>& keys) {
    const std::vector<TableKeys> pushed = {{2, 3, keys}};
    const std::vector<std::span<const float>> gradients = {gradient_};
    ASSERT_TRUE(tables.Push(step, pushed, gradients, 8, {}).ok());
  };
  std::vector<std::vector<float>> after;  // of rows 4, 7 and 9 after each step
  after.push_back(rows(1, {4, 7, 9}));
  for (const auto& [step, keys] : std::map<int64_t, std::vector<uint64_t>>{{1, {4, 7}}, {2, {7, 9}}, {3, {4, 9}}}) {
    push(step, keys);
    after.push_back(rows(step + 1, {4, 7, 9}));
  }
  for (int64_t version = 0; version <= 3; ++version) {
    EXPECT_EQ(rows(version + 1, {4, 7, 9}), after[static_cast<size_t>(version)]) << version;
  }
  push(4, {4, 7});
  EXPECT_EQ(rows(2, {4, 7, 9}), after[1]);
  std::vector<std::vector<float>> gone;
  EXPECT_EQ(tables.Pull(1, keys_, gone, {}).message(),
            "the rows of step 0 are no longer kept: the oldest are those of step 1");
  ASSERT_TRUE(tables.UndoTo(2).ok());
  EXPECT_EQ(rows(3, {4, 7, 9}), after[2]);
  EXPECT_EQ(tables.UndoLimit(), 1);
  ASSERT_TRUE(tables.UndoTo(1).ok());
  EXPECT_EQ(rows(2, {4, 7, 9}), after[1]);
  EXPECT_EQ(tables.UndoTo(0).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LocalTablesTest, KeepsNothingWithoutUndo) {
  LocalTables without({Spec()}, optimizer_, 9, 0), with({Spec()}, optimizer_, 9, 1);
  const auto rows = [&](LocalTables& tables, int64_t step) {
    std::vector<std::vector<float>> pulled;
    const std::vector<TableKeys> wanted = {{2, 3, {4, 7}}};
    EXPECT_EQ(base::ToString(tables.Pull(step, wanted, pulled, {})), "OK");
    return pulled[0];
  };
  for (int64_t step = 1; step <= 2; ++step) {
    const std::vector<TableKeys> pushed = {{2, 3, {4, 7}}};
    const std::vector<std::span<const float>> gradients = {gradient_};
    ASSERT_TRUE(without.Push(step, pushed, gradients, 8, {}).ok());
    ASSERT_TRUE(with.Push(step, pushed, gradients, 8, {}).ok());
    EXPECT_EQ(rows(without, step + 1), rows(with, step + 1));
    EXPECT_EQ(without.UndoLimit(), step);
  }
  EXPECT_EQ(without.UndoTo(1).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LocalTablesTest, APullWaitsForTheStepBefore) {
  std::vector<float> late;
  std::jthread puller([&] { late = Pull(2); });
  ASSERT_TRUE(Push(1).ok());
  puller.join();
  EXPECT_EQ(late, Pull(2));
}

TEST_F(LocalTablesTest, WaitsAreBounded) {
  std::vector<std::vector<float>> rows;
  EXPECT_EQ(tables_.Pull(5, keys_, rows, {{}, base::SteadyTime::min()}).code(), absl::StatusCode::kDeadlineExceeded);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(tables_.Pull(5, keys_, rows, {stop.get_token()}).code(), absl::StatusCode::kCancelled);
}

TEST_F(LocalTablesTest, RefusesOtherStepsAndRows) {
  EXPECT_EQ(Push(2).code(), absl::StatusCode::kFailedPrecondition);
  std::vector<std::vector<float>> rows;
  const std::vector<TableKeys> beyond = {{2, 3, {50}}};
  EXPECT_EQ(tables_.Pull(1, beyond, rows, {}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace medley::worker
