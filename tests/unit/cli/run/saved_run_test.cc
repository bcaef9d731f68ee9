#include "cli/run/saved_run.h"

#include <gmock/gmock.h>

#include "cli/run/checkpoints_on_disk.h"
#include "cli/run/prepare_folder.h"
#include "cli/run/stop_run.h"
#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "operator/api/job_status.h"
#include "worker/checkpoint/layout.h"
#include "worker/claim/claims.h"

namespace medley::cli {
namespace {

using base::IsOk;
using base::IsOkAndHolds;
using base::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

kube::Object JobOf(const std::string& uid, const std::string& training = R"({"batchSize": 512, "epochs": 3})") {
  kube::Object job(kube::Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
      "metadata": {"name": "click", "namespace": "default"}, "spec": {"objective": {"maxUsdPerHour": "2"},
      "checkpoint": {"interval": "60s", "volume": {"persistentVolumeClaim": {"claimName": "medley-run"},
                                                   "mountPath": "/checkpoints"}}}})"));
  if (!uid.empty()) job.mutable_json()["metadata"]["uid"] = uid;
  job.mutable_json()["spec"]["training"] = kube::Json::parse(training);
  return job;
}

SavedRun RunOf(const std::string& conditions = "[]") {
  SavedRun run{"/home/a/job.yaml", "/home/a/click-model", JobOf("u-1")};
  run.job.mutable_json()["status"] = {{"coordinatorTerm", 2}, {"conditions", kube::Json::parse(conditions)}};
  return run;
}

std::string ConditionText(const std::string& type) {
  return R"([{"type": ")" + type + R"(", "status": "True", "reason": "BadData", "message": "row 3 is bad"}])";
}

class SavedRunTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("saved-run"); }
  void TearDown() override { base::RemoveTempDir(folder_); }
  FolderOptions Options(bool resume, bool own = true) const {
    return {.folder = folder_ / "run", .manifest = "job.yaml", .resume = resume, .own = own};
  }
  // A run with a checkpoint of step 42.
  void MakeRun(const SavedRun& run, bool checkpoint = true) const {
    const auto volume = *CheckpointFolderOf(run.job, ClaimsOf(folder_ / "run"));
    std::filesystem::create_directories(volume / "step-00000042-e1");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    ASSERT_THAT(WriteSavedRun(folder_ / "run", run), IsOk());
    worker::CheckpointManifest manifest{.job_uid = run.job.uid(),
                                        .model_fingerprint = "f",
                                        .generation = 1,
                                        .step = 42,
                                        .rows = 100,
                                        .data_epochs = 3,
                                        .batch_size = 10,
                                        .folder = "step-00000042-e1"};
    if (!checkpoint) return;
    ASSERT_THAT(base::WriteFileAtomic(volume / "step-00000042-e1/manifest.json", worker::ToJson(manifest)), IsOk());
    ASSERT_THAT(worker::Claims(worker::Volume(volume)).Take(4, "127.0.0.1:1", "a1").status(), IsOk());
  }
  std::filesystem::path folder_;
};

TEST_F(SavedRunTest, IsReadAsItWasWritten) {
  EXPECT_FALSE(ReadSavedRun(folder_)->has_value());
  ASSERT_THAT(WriteSavedRun(folder_, RunOf()), IsOk());
  const auto read = ReadSavedRun(folder_);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ((*read)->job.json(), RunOf().job.json());
  EXPECT_EQ((*read)->manifest, "/home/a/job.yaml");
  EXPECT_EQ((*read)->model, "/home/a/click-model");
  for (const char* damaged : {"", "{", "[]", R"({"format": 9, "job": {}})", R"({"format": 1, "job": {}})"}) {
    ASSERT_THAT(base::WriteFileAtomic(folder_ / kSavedRunFile, damaged), IsOk());
    EXPECT_THAT(ReadSavedRun(folder_).status(), StatusIs(absl::StatusCode::kDataLoss)) << damaged;
  }
}

TEST_F(SavedRunTest, OnlyFieldsOfTheTrainingMustBeTheSame) {
  EXPECT_THAT(CheckResumable(RunOf(), JobOf(""), "job.yaml"), IsOk());
  kube::Object other = JobOf("");
  other.mutable_json()["spec"]["objective"] = {{"deadline", "1h"}};
  other.mutable_json()["spec"]["checkpoint"]["interval"] = "5s";
  EXPECT_THAT(CheckResumable(RunOf(), other, "job.yaml"), IsOk());
  EXPECT_THAT(CheckResumable(RunOf(), JobOf("", R"({"batchSize": 256, "epochs": 3, "seed": 7})"), "job.yaml"),
              StatusIs(kPrecondition, AllOf(HasSubstr("changed job.yaml: spec.training.batchSize is 512 in the run and "
                                                      "256 in the file; spec.training.seed is not set in the run and 7 "
                                                      "in the file"))));
  other.mutable_json()["spec"]["checkpoint"]["volume"]["mountPath"] = "/elsewhere";
  EXPECT_THAT(CheckResumable(RunOf(), other, "job.yaml"),
              StatusIs(kPrecondition, HasSubstr("spec.checkpoint.volume.mountPath is \"/checkpoints\" in the run")));
  other.mutable_json()["metadata"]["name"] = "clack";
  EXPECT_THAT(CheckResumable(RunOf(), other, "job.yaml"),
              StatusIs(kPrecondition, HasSubstr("metadata.name is default/click in the run and default/clack")));
}

TEST_F(SavedRunTest, ARunThatIsOverIsNotContinued) {
  EXPECT_THAT(CheckResumable(RunOf(ConditionText("Complete")), JobOf(""), "job.yaml"),
              StatusIs(kPrecondition, HasSubstr("is complete")));
  EXPECT_THAT(CheckResumable(RunOf(ConditionText("Failed")), JobOf(""), "job.yaml"),
              StatusIs(kPrecondition, HasSubstr("has failed (BadData: row 3 is bad)")));
}

TEST_F(SavedRunTest, AResumedJobIsTheRunsWithTheNewerTerm) {
  const kube::Object resumed = ResumedJob(RunOf(ConditionText("Running")), JobOf("", "{}"), 5, base::WallTime());
  EXPECT_EQ(resumed.uid(), "u-1");
  EXPECT_EQ(resumed.At("/spec/training"), kube::Json::object());
  const ops::JobStatus status = ops::JobStatus::FromJson(resumed.At("/status"));
  EXPECT_EQ(status.coordinator_term, 5);
  EXPECT_TRUE(status.conditions.IsTrue(ops::kSuspendedCondition));
  EXPECT_EQ(status.conditions.Find(ops::kRunningCondition), nullptr);
  EXPECT_EQ(
      ops::JobStatus::FromJson(ResumedJob(RunOf(), JobOf(""), 1, base::WallTime()).At("/status")).coordinator_term, 2);
}

TEST_F(SavedRunTest, IsBesideTheModel) {
  EXPECT_EQ(DefaultRunFolder("/home/a/click-model", "click"), "/home/a/click-run");
  EXPECT_EQ(DefaultRunFolder("/home/a/click-model/", "click"), "/home/a/click-run");
  EXPECT_EQ(DefaultRunFolder("./click-model", "click"), std::filesystem::current_path() / "click-run");
}

TEST_F(SavedRunTest, PreparesAFolderForOneRunAtATime) {
  EXPECT_THAT(PrepareRunFolder(Options(true), JobOf("")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run does not exist")));
  const auto first = PrepareRunFolder(Options(false), JobOf(""));
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE(first->existed);
  EXPECT_THAT(PrepareRunFolder(Options(false), JobOf("")).status(),
              StatusIs(kPrecondition, HasSubstr("another medley run (process " + std::to_string(getpid()) + ")")));
  EXPECT_THAT(PrepareRunFolder(Options(true), JobOf("")).status(), StatusIs(kPrecondition));
}

TEST_F(SavedRunTest, ResumesFromTheNewestCheckpoint) {
  MakeRun(RunOf());
  const auto prepared = PrepareRunFolder(Options(true), JobOf(""));
  ASSERT_THAT(prepared, IsOk());
  EXPECT_EQ(prepared->claimed_term, 4);
  EXPECT_EQ(prepared->earlier->job.uid(), "u-1");
  EXPECT_THAT(prepared->remarks, ElementsAre(HasSubstr("continuing from step 42: ")));
}

TEST_F(SavedRunTest, ARunWithoutItsVolumeIsNotContinued) {
  MakeRun(RunOf());
  base::RemoveTempDir(ClaimsOf(folder_ / "run"));
  EXPECT_THAT(PrepareRunFolder(Options(true), JobOf("")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has written nothing to its checkpoint volume")));
}

TEST_F(SavedRunTest, AnotherRunDoesNotDestroyOneThatCanContinue) {
  MakeRun(RunOf());
  {
    const auto prepared = PrepareRunFolder(Options(false), JobOf(""));
    ASSERT_THAT(prepared, IsOk());
    EXPECT_THAT(prepared->remarks, ElementsAre(AllOf(HasSubstr("ended at step 42"), HasSubstr("run.previous"),
                                                     HasSubstr("medley run /home/a/job.yaml --resume --folder"))));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / kSavedRunFile));
  }
  FolderOptions previous = Options(true);
  previous.folder = folder_ / "run.previous";
  EXPECT_THAT(PrepareRunFolder(previous, JobOf("")), IsOk());
  // One is kept.
  MakeRun(RunOf());
  EXPECT_THAT(PrepareRunFolder(Options(false), JobOf("")), IsOk());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()), 2);
}

TEST_F(SavedRunTest, WhatCannotContinueIsRemovedFromAnOwnFolderOnly) {
  MakeRun(RunOf(ConditionText("Failed")));
  EXPECT_THAT(PrepareRunFolder(Options(false, false), JobOf("")), IsOk());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/node"));
  EXPECT_THAT(PrepareRunFolder(Options(false), JobOf("")), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/node"));
  MakeRun(RunOf(), false);
  EXPECT_THAT(PrepareRunFolder(Options(false), JobOf("")), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run.previous"));
}

TEST(StopRunTest, SaysStepCheckpointAndCommand) {
  EXPECT_THAT(StopLines({}, "c"), ElementsAre("stopped before the first step: there is nothing to continue"));
  EXPECT_THAT(StopLines({.checkpoint = CheckpointOnDisk{7, "/c/step-7"}, .step = 7}, "medley run x --resume"),
              ElementsAre("stopped at step 7; the checkpoint is /c/step-7", "continue with: medley run x --resume"));
  EXPECT_THAT(
      StopLines({.checkpoint = CheckpointOnDisk{4, "/c/step-4"}, .step = 7, .problem = "disk full"}, "c"),
      ElementsAre("stopped at step 7; the last checkpoint is of step 4: /c/step-4 (disk full)", "continue with: c"));
  EXPECT_THAT(StopLines({.step = 7, .problem = "disk full"}, "c"),
              ElementsAre("stopped at step 7 without a checkpoint, so there is nothing to continue: disk full"));
}

TEST(StopRunTest, CommandsAreQuotedForAShell) {
  EXPECT_EQ(ShellCommand({"medley", "run", "a b.yaml", "it's", ""}), "medley run 'a b.yaml' 'it'\\''s' ''");
}

}  // namespace
}  // namespace medley::cli
