// Compares an event file with one that TensorBoard's own code wrote (tests/golden/tensorboard/make_events.py).
#include "worker/coordinator/server/tensor_board.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/tf_record/tf_record.h"
#include "medley/tensorboard/v1/event.pb.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using testing::ElementsAre;

base::WallTime At(double seconds) {
  return base::WallTime{} + std::chrono::duration_cast<base::WallTime::duration>(base::FromSeconds(seconds));
}

StepCommand Step(int64_t step, double loss) {
  return {.range = {.step = step, .data_epoch = 0, .first = 0, .count = 10}, .generation = 1, .loss = loss};
}

EvaluationCommand Evaluation(int64_t step) {
  EvaluationCommand evaluation;
  evaluation.record.set_step(step);
  evaluation.record.set_loss(0.25);
  for (const auto& [name, value] : {std::pair("log_loss", 0.5), std::pair("auc", 0.75), std::pair("test_samples", 9.0)})
    (*evaluation.record.mutable_metrics())[name] = value;
  return evaluation;
}

class TensorBoardTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-board"); }
  void TearDown() override { base::RemoveTempDir(root_); }
  std::unique_ptr<TensorBoard> Open(TensorBoard::Position position, double seconds, const std::string& writer = "a") {
    return TensorBoard::Open(Volume(root_), {writer, [](int64_t) { return 0.125; }}, position, At(seconds)).value();
  }
  // For the files, in the order in which TensorBoard reads them.
  std::vector<std::string> Contents() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(root_ / kTensorBoardFolder)) paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<std::string> contents;
    for (const fs::path& path : paths) contents.push_back(base::ReadFile(path).value());
    return contents;
  }

  fs::path root_;
};

std::vector<tensorboard::v1::Event> Parse(std::string_view file) {
  std::vector<tensorboard::v1::Event> events;
  while (file.size() >= 12) {
    uint64_t length = 0;
    std::copy_n(file.data(), sizeof length, reinterpret_cast<char*>(&length));
    const std::string_view data = file.substr(12, length);
    EXPECT_EQ(tf_record::TfRecord(data), file.substr(0, length + 16));
    EXPECT_TRUE(events.emplace_back().ParseFromArray(data.data(), static_cast<int>(data.size())));
    file.remove_prefix(length + 16);
  }
  EXPECT_TRUE(file.empty());
  return events;
}

TEST_F(TensorBoardTest, WritesWhatTensorBoardItselfWould) {
  {
    const auto board = Open({}, 100);
    ASSERT_THAT(board->Add(Step(1, 0.5), At(100.5)), IsOk());
    ASSERT_THAT(board->Add(Step(2, 0.25), At(101.5)), IsOk());
    ASSERT_THAT(board->Add(Evaluation(2), At(102)), IsOk());
    ASSERT_THAT(board->Add(Evaluation(2), At(102.5)), IsOk()) << "reported again";
    ASSERT_THAT(board->Rollback({.to_step = 1, .generation = 2}, At(103)), IsOk());
    ASSERT_THAT(board->Add(Step(1, 9), At(104)), IsOk()) << "reported again";
    ASSERT_THAT(board->Add(Step(2, 1.5), At(105)), IsOk());
  }
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  const auto golden =
      base::ReadFile(fs::path(source == nullptr ? "." : source) / "tests/golden/tensorboard/curve.tfevents");
  ASSERT_THAT(golden, IsOk());
  EXPECT_THAT(Contents(), ElementsAre(*golden));
}

TEST_F(TensorBoardTest, ARestartBeginsALaterFileAlsoWithAClockBehind) {
  ASSERT_THAT(Open({}, 500)->Add(Step(1, 0.5), At(502)), IsOk());
  ASSERT_THAT(Open({.step = 1, .evaluation = 0}, 400, "b")->Add(Step(1, 0.5), At(402)), IsOk());
  const std::vector<std::string> files = Contents();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(Parse(files[0]).size(), 3U);
  const auto second = Parse(files[1]);
  ASSERT_EQ(second.size(), 2U) << "step 1 was written before";
  EXPECT_EQ(second[1].session_log().status(), tensorboard::v1::SESSION_STATUS_START);
  EXPECT_EQ(second[1].step(), 2);
}

TEST_F(TensorBoardTest, ALongTrainingHasFewPoints) {
  const auto board = Open({}, 0);
  constexpr int kSteps = 200'000;
  for (int step = 1; step <= kSteps; ++step) ASSERT_THAT(board->Add(Step(step, 0.5), At(step)), IsOk());
  const auto events = Parse(Contents().at(0));
  EXPECT_GT(events.size(), 2000U);
  EXPECT_LT(events.size(), 13000U);
  ASSERT_THAT(board->Flush(At(kSteps)), IsOk());
  EXPECT_EQ(Parse(Contents().at(0)).back().step(), kSteps);
}

}  // namespace
}  // namespace medley::worker
