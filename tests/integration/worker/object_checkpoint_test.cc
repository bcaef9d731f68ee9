// Jobs without any volume: checkpoints, journal and model are in an object store, a server in another process over TLS
// that checks signatures and fails on demand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "tests/integration/object_store/server_process.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::object_checkpoint_test {
namespace {

namespace pb = ::medley::job::v1;
using base::IsOk;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kSteps = 100;  // of an epoch
constexpr int kEndless = 5000;  // epochs: the job does not end before the test
constexpr int kSupersededExit = 3;
constexpr char kRoot[] = "s3://jobs/team/job-1";

class ObjectCheckpointTest : public testing::Test {
 protected:
  ObjectCheckpointTest() { setenv("no_proxy", "localhost", 1); }

  JobOptions Options(int epochs, const std::string& root = kRoot) const {
    JobOptions options = SmallJob(table_.file(), epochs);
    options.checkpoint_uri = root;
    options.environment = server_.environment();
    return options;
  }
  std::vector<std::string> Keys(const std::string& below) {
    std::vector<std::string> keys;
    const auto listing = store_.List(*object_store::ParseLocation(std::string(kRoot) + "/" + below), false, {});
    EXPECT_THAT(listing.status(), IsOk());
    if (!listing.ok()) return keys;
    for (const object_store::ListedObject& each : listing->objects) keys.push_back(each.key);
    return keys;
  }
  std::string Get(const std::string& key) {
    const object_store::Location at{object_store::Scheme::kS3, "jobs", key};
    const auto info = store_.Stat(at, {});
    EXPECT_THAT(info.status(), IsOk()) << key;
    return info.ok() ? store_.Read(at, *info, 0, info->bytes, {}).value_or("") : "";
  }
  // The losses of the committed steps, in the order of the objects.
  std::vector<double> Losses(JobHarness& job) {
    std::filesystem::create_directories(job.checkpoints());
    std::ofstream lines(job.checkpoints() / "steps.jsonl");
    for (const std::string& key : Keys("steps/")) lines << Get(key);
    lines.close();
    return job.Losses();
  }
  // A trainer is slow meanwhile, so that the job does not end before.
  static pb::Observation WaitForCheckpoint(JobHarness& job) {
    const Slowed held(job, "t0-0");
    return job.WaitFor([](const pb::Observation& o) { return IsOver(o) || o.last_checkpoint_step() > 20; },
                       base::seconds(60));
  }
  static void ExpectComplete(JobHarness& job, int epochs) {
    worker::ExpectComplete(job, int64_t{SmallTable::kRows} * epochs);
  }
  // The losses of a job that nobody disturbs; all tests with so many epochs share it. Sets weights_.
  std::vector<double> LossesWithAVolume(int epochs) {
    auto& [losses, weights] = with_a_volume_[epochs];
    if (losses.empty()) {
      JobHarness job(Options(epochs, ""));
      job.StartCoordinator(1);
      job.Apply(shape_, "start");
      ExpectComplete(job, epochs);
      weights = *base::ReadFile(job.checkpoints() / "export/model.safetensors");
      losses = job.Losses();
    }
    weights_ = weights;
    return losses;
  }

  static inline std::map<int, std::pair<std::vector<double>, std::string>> with_a_volume_;  // by epochs
  const SmallTable table_;
  object_store::ServerProcess server_;
  base::SystemClock clock_;
  object_store::ObjectStore store_{server_.settings(), clock_, 1};
  std::string weights_;  // of the model of LossesWithAVolume
  // Two stages; one server has the table.
  const JobShape shape_{.stages = {{0, 1, 1}, {1, 4, 1}}, .servers = 1, .micro_batches = 2};
};

TEST_F(ObjectCheckpointTest, AJobWithoutAVolumeTrainsThroughAStormAsOneWithAVolume) {
  const std::vector<double> expected = LossesWithAVolume(4);
  ASSERT_EQ(expected.size(), kSteps * 4);
  server_.Fail("storm", 10);
  server_.Fail("half", 3);
  server_.Fail("lost", 3);
  JobHarness job(Options(4));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  ExpectComplete(job, 4);
  EXPECT_EQ(Losses(job), expected);
  EXPECT_EQ(Get("team/job-1/export/model.safetensors"), weights_);
  EXPECT_THAT(Get("team/job-1/export/model.json"), HasSubstr("model.safetensors"));
  EXPECT_THAT(Keys("logs/"), testing::ElementsAre("team/job-1/logs/coordinator-000001.log"));
  EXPECT_LE(Keys("journal").size(), 2U);
  EXPECT_EQ(server_.uploads(), 0) << "begun and not ended";
  EXPECT_FALSE(std::filesystem::exists(job.checkpoints() / "journal"));
}

// All processes are killed at once, and their machine is lost.
TEST_F(ObjectCheckpointTest, AKilledJobContinuesOnAnotherMachineFromTheStoreAlone) {
  constexpr int kEpochs = 4;
  const std::vector<double> expected = LossesWithAVolume(kEpochs);
  int64_t saved = 0;
  {
    JobHarness job(Options(kEpochs));
    job.StartCoordinator(1);
    job.Apply(shape_, "start");
    const pb::Observation seen = WaitForCheckpoint(job);
    ASSERT_FALSE(IsOver(seen)) << seen.message() << job.AllLogs();
    saved = seen.last_checkpoint_step();
  }
  JobOptions options = Options(kEpochs);
  options.plans_before = 1;
  JobHarness job(options);
  job.StartCoordinator(2);
  job.Follow(2);
  job.Apply(shape_, "again");
  ExpectComplete(job, kEpochs);
  const std::vector<std::string> second = Keys("steps/00000002");
  ASSERT_FALSE(second.empty());
  EXPECT_THAT(Get(second[0]), testing::Not(HasSubstr("\"step\":1,"))) << "it began at step " << saved;
  ASSERT_EQ(expected.size(), kSteps * kEpochs);
  // Lines of up to ten seconds are lost with a coordinator that is killed; no sample is.
  EXPECT_EQ(Get("team/job-1/export/model.safetensors"), weights_);
  EXPECT_EQ(server_.uploads(), 0);
}

// The first coordinator is stopped while it leads, and later goes on in the belief that it still does.
TEST_F(ObjectCheckpointTest, AFormerCoordinatorSpoilsNothing) {
  constexpr int kEpochs = 4;
  const std::vector<double> expected = LossesWithAVolume(kEpochs);
  JobHarness job(Options(kEpochs));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  const pb::Observation seen = WaitForCheckpoint(job);
  ASSERT_FALSE(IsOver(seen)) << seen.message() << job.AllLogs();
  job.Pause("coordinator");
  job.StartCoordinator(2);
  job.Follow(2);
  job.WaitFor([](const pb::Observation& o) { return IsOver(o) || o.generation() > 0; }, base::seconds(90));
  job.Resume("coordinator");
  EXPECT_EQ(job.WaitForExit("coordinator"), kSupersededExit) << job.AllLogs();
  job.WaitForEnd(base::seconds(120));
  ExpectComplete(job, kEpochs);
  EXPECT_EQ(Get("team/job-1/export/model.safetensors"), weights_);
}

// The coordinator ends for good within seconds, with the sentence.
TEST_F(ObjectCheckpointTest, WhatTheStoreRefusesIsSaidBeforeTheTraining) {
  const auto last_words = [](const JobOptions& options) {
    JobHarness job(options);
    job.StartCoordinator(1);
    EXPECT_EQ(job.WaitForExit("coordinator", base::seconds(20)), 2) << job.AllLogs();
    return job.Log("coordinator");
  };
  JobOptions wrong = Options(1);
  wrong.environment[1] = "AWS_SECRET_ACCESS_KEY=another";
  EXPECT_THAT(last_words(wrong), AllOf(HasSubstr("spec.checkpoint.uri: writing s3://jobs/team/job-1/"),
                                       HasSubstr("access denied: check AWS_ACCESS_KEY_ID")));
  EXPECT_THAT(last_words(Options(1, "s3://missing/job")),
              AllOf(HasSubstr("spec.checkpoint.uri: "), HasSubstr("the bucket does not exist")));
  server_.Fail("readonly", 1000);
  EXPECT_THAT(last_words(Options(1)), AllOf(HasSubstr("spec.checkpoint.uri: writing "), HasSubstr("access denied")));
  EXPECT_THAT(last_words(Options(1, "https://localhost/x")), HasSubstr("use s3:// or gs://"));
}

TEST_F(ObjectCheckpointTest, TrainingGoesOnWhileTheStoreIsFull) {
  JobHarness job(Options(kEndless));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  job.WaitFor([](const pb::Observation& o) { return IsOver(o) || o.last_checkpoint_step() > 0; }, base::seconds(60));
  server_.Fail("full", 1'000'000);
  const pb::Observation failing =
      job.WaitFor([](const pb::Observation& o) { return IsOver(o) || o.has_checkpoint_failure(); }, base::seconds(60));
  ASSERT_TRUE(failing.has_checkpoint_failure()) << failing.ShortDebugString() << job.AllLogs();
  EXPECT_THAT(failing.checkpoint_failure().message(), HasSubstr("the store has no room"));
  EXPECT_GT(failing.checkpoint_failure().since().seconds(), 0);
  const pb::Observation later = job.WaitFor(
      [&](const pb::Observation& o) { return IsOver(o) || o.step() >= failing.step() + 200; }, base::seconds(60));
  EXPECT_TRUE(later.has_checkpoint_failure());
  EXPECT_FALSE(later.checkpoint_failure().paused()) << later.ShortDebugString();
  EXPECT_EQ(later.last_checkpoint_step(), failing.last_checkpoint_step());
  EXPECT_EQ(later.checkpoint_failure().since().seconds(), failing.checkpoint_failure().since().seconds());
  server_.Fail("full", 0);
  const pb::Observation written =
      job.WaitFor([](const pb::Observation& o) { return IsOver(o) || !o.has_checkpoint_failure(); }, base::seconds(60));
  EXPECT_GT(written.last_checkpoint_step(), failing.last_checkpoint_step()) << job.AllLogs();
}

// Each write takes a second, so two pass between the step that a checkpoint is of and its end: first parts, then the
// manifest.
TEST_F(ObjectCheckpointTest, TrainingGoesOnWhileACheckpointIsSent) {
  JobHarness job(Options(kEndless));
  job.StartCoordinator(1);
  job.Apply(shape_, "start");
  job.WaitFor([](const pb::Observation& o) { return IsOver(o) || o.last_checkpoint_step() > 0; }, base::seconds(60));
  server_.Fail("slow", 1'000'000);
  const int64_t before = job.Observe().last_checkpoint_step();
  int64_t seen_before = before;  // one checkpoint may have begun earlier
  int64_t behind = -1;
  const pb::Observation seen = job.WaitFor(
      [&](const pb::Observation& o) {
        if (o.last_checkpoint_step() > seen_before) {
          if (seen_before > before) behind = o.step() - o.last_checkpoint_step();
          seen_before = o.last_checkpoint_step();
        }
        return IsOver(o) || behind >= 0;
      },
      base::seconds(60));
  ASSERT_FALSE(IsOver(seen)) << seen.message() << job.AllLogs();
  EXPECT_GE(behind, 20) << "steps that were trained while the checkpoint was sent";
  // A record on which something depends waits for the periodic one that is being written, and not longer.
  job.Apply({.stages = {{0, 4, 1}}, .servers = 1, .micro_batches = 2}, "again");
  job.WaitFor([&](const pb::Observation& o) { return IsOver(o) || o.generation() > seen.generation(); },
              base::seconds(60));
  server_.Fail("slow", 0);
}

}  // namespace
}  // namespace medley::worker::object_checkpoint_test
