#include "worker/agent/event_reports.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/tf_record/tf_record.h"
#include "medley/tensorboard/v1/event.pb.h"
#include "worker/agent/event_files.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::IsEmpty;

std::string Scalar(int64_t step, const std::string& tag, float value, double wall_time = 0) {
  tensorboard::v1::Event event;
  event.set_step(step);
  event.set_wall_time(wall_time);
  tensorboard::v1::Value& scalar = *event.mutable_summary()->add_values();
  scalar.set_tag(tag);
  scalar.set_simple_value(value);
  return tf_record::TfRecord(event.SerializeAsString());
}

TEST(EventReportsTest, ScalarsOfOneStepAreOneReport) {
  const std::string bytes = Scalar(1, "train/learning_rate", 0.1F, 100) + Scalar(1, "train/loss", 0.5F, 101) +
                            Scalar(1, "eval/loss", 9, 102) + Scalar(2, "Loss", 0.25F, 103) + Scalar(0, "loss", 7) +
                            Scalar(3, "loss", std::numeric_limits<float>::quiet_NaN());
  const auto read = ReadEvents(bytes);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->used, bytes.size());
  ASSERT_EQ(read->reports.size(), 3u);
  EXPECT_EQ(read->reports[0].report, (model::StepReport{1, 0.5}));
  EXPECT_EQ(read->reports[0].wall_time, 100);
  EXPECT_EQ(read->reports[1].report, (model::StepReport{2, 0.25}));
  EXPECT_EQ(read->reports[2].report, (model::StepReport{3, std::nullopt}));
}

TEST(EventReportsTest, SummariesOfTensorFlow2HaveTensors) {
  tensorboard::v1::Event event;
  event.set_step(4);
  tensorboard::v1::Value& value = *event.mutable_summary()->add_values();
  value.set_tag("loss");
  value.mutable_tensor()->set_dtype(1);
  const float loss = 0.75F;
  value.mutable_tensor()->set_tensor_content(std::string(reinterpret_cast<const char*>(&loss), sizeof loss));
  const auto read = ReadEvents(tf_record::TfRecord(event.SerializeAsString()));
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->reports.size(), 1u);
  EXPECT_EQ(read->reports[0].report, (model::StepReport{4, 0.75}));
}

TEST(EventReportsTest, LongRecordsAreSkippedAndDamageIsAnError) {
  const std::string bytes = tf_record::TfRecord(std::string(100'000, 'x')) + Scalar(1, "loss", 1);
  const auto whole = ReadEvents(bytes);
  ASSERT_THAT(whole, IsOk());
  ASSERT_EQ(whole->reports.size(), 1u);
  const auto begun = ReadEvents(std::string_view(bytes).substr(0, 50));
  ASSERT_THAT(begun, IsOk());
  EXPECT_EQ(begun->used, 100'016u) << "the rest is not there yet";
  EXPECT_THAT(begun->reports, IsEmpty());
  std::string damaged = Scalar(1, "loss", 1);
  damaged.back() ^= 1;
  EXPECT_THAT(ReadEvents(damaged).status(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(EventReportsTest, TheLossOfTrainingIsFoundByItsName) {
  for (const char* tag : {"loss", "train/loss", "Loss", "epoch/train_loss", "training_loss", "train_loss_step"}) {
    EXPECT_TRUE(IsLossTag(tag)) << tag;
  }
  for (const char* tag : {"eval/loss", "val_loss", "validation/loss", "test/loss", "accuracy", "loss/total", ""}) {
    EXPECT_FALSE(IsLossTag(tag)) << tag;
  }
}

class EventFilesTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("event-files"); }
  void TearDown() override { base::RemoveTempDir(root_); }
  void Append(const std::string& name, const std::string& bytes) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary | std::ios::app) << bytes;
  }
  std::vector<int64_t> Steps(EventFiles& files) {
    std::vector<int64_t> steps;
    for (const EventReport& event : files.Read(now_ += base::seconds(5))) steps.push_back(event.report.step);
    return steps;
  }
  fs::path root_;
  base::SteadyTime now_{base::seconds(100)};
};

TEST_F(EventFilesTest, FollowsFilesThatAreCreatedLater) {
  Append("events.out.tfevents.1", Scalar(50, "loss", 1));  // of the run before
  EventFiles files(root_);
  EXPECT_THAT(Steps(files), IsEmpty());
  const std::string second = Scalar(2, "loss", 1);
  Append("runs/today/events.out.tfevents.2", Scalar(1, "loss", 1) + second.substr(0, 20));
  Append("runs/today/notes.txt", "no events");
  EXPECT_THAT(Steps(files), testing::ElementsAre(1));
  Append("runs/today/events.out.tfevents.2", second.substr(20));
  Append("events.out.tfevents.1", Scalar(51, "loss", 1));
  EXPECT_THAT(Steps(files), testing::ElementsAre(2));
  Append("runs/today/events.out.tfevents.2", std::string(30, '\0'));
  Append("runs/today/events.out.tfevents.2", Scalar(3, "loss", 1));
  EXPECT_THAT(Steps(files), IsEmpty()) << "it is damaged";
  Append("runs/tomorrow/events.out.tfevents.3", Scalar(3, "loss", 1));
  EXPECT_THAT(Steps(files), testing::ElementsAre(3));
}

TEST_F(EventFilesTest, WaitsForAFolderThatDoesNotExistYet) {
  EventFiles files(root_ / "later");
  EXPECT_THAT(Steps(files), IsEmpty());
  Append("later/events.out.tfevents.1", Scalar(1, "loss", 1));
  EXPECT_THAT(Steps(files), testing::ElementsAre(1));
}

// Written by TensorBoard's own code (tests/golden/tensorboard/make_events.py).
TEST_F(EventFilesTest, ReadsAFileOfTensorBoard) {
  EventFiles files(root_);
  const std::string source = std::getenv("MEDLEY_SOURCE_DIR");
  Append("curve.tfevents", base::ReadFile(source + "/tests/golden/tensorboard/curve.tfevents").value());
  const std::vector<int64_t> steps = Steps(files);
  ASSERT_FALSE(steps.empty());
  EXPECT_TRUE(std::ranges::is_sorted(steps));
}

}  // namespace
}  // namespace medley::worker
