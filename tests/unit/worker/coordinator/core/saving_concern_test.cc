// The concerns that save and restore: checkpoints, restoring, the exported model.
#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/unit/worker/coordinator/core/concern_fixture.h"

namespace medley::worker::concern {
namespace {

using testing::ElementsAre;

TEST(CheckpointsConcernTest, WhenOneIsStarted) {
  struct Case {
    const char* name;
    std::function<void(Job&)> prepare;
    double seconds;
    bool starts;
  };
  const std::vector<Case> cases = {
      {"early", [](Job&) {}, 59, false},
      {"after the interval", [](Job&) {}, 60, true},
      {"a member leaves", [](Job& job) { checkpoints::Want(job.state.checkpoints, true, At(0)); }, 1, true},
      {"it is replaced",
       [](Job& job) {
         checkpoints::Want(job.state.checkpoints, true, At(0)), checkpoints::Want(job.state.checkpoints, false, At(0));
       },
       1, false},
      {"one is being written", [](Job& job) { job.state.checkpoints.pending.emplace(); }, 60, false},
      {"one is being completed", [](Job& job) { job.state.checkpoints.writing.emplace(); }, 60, false},
      {"and a member leaves",
       [](Job& job) { job.state.checkpoints.writing.emplace(), checkpoints::Want(job.state.checkpoints, true, At(0)); },
       60, true},
      {"the last one has this step", [](Job& job) { job.state.checkpoints.last_step = 5; }, 60, false},
      {"a switch comes first", [](Job& job) { job.Prepare(), job.Warm(); }, 60, false},
      {"another coordinator takes over", [](Job& job) { job.state.hand_over.successor.emplace(); }, 60, false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    job.Commit(5);
    each.prepare(job);
    EXPECT_EQ(checkpoints::Consider(job.state.checkpoints, job.state, At(each.seconds)), each.starts);
  }
}

TEST(CheckpointsConcernTest, EveryAttemptHasAFolderOfItsOwn) {
  Job job;
  job.Train();
  std::vector<std::string> folders;
  for (const int64_t step : {5, 5, 5, 6}) {
    checkpoints::Start(job.state.checkpoints, job.state, step, At(0), job.out);
    folders.push_back(job.state.checkpoints.pending->folder);
  }
  EXPECT_THAT(folders, ElementsAre("step-00000005-e1", "step-00000005-e1-1", "step-00000005-e1-2", "step-00000006-e1"));
}

TEST(CheckpointsConcernTest, OnlyTheFaultOfAPendingPartGivesItUp) {
  struct Case {
    const char* name;
    int64_t generation, step;
    std::string request;
  };
  const std::vector<Case> cases = {
      {"pending", 1, 5,
       "not saved, step-00000005-e1: job-0-a-0 could not write its part of the checkpoint of step 5: full"},
      {"an earlier step", 1, 4, ""},
      {"an earlier generation", 0, 5, ""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    checkpoints::Start(job.state.checkpoints, job.state, 5, At(0), job.out);
    job.out.Take();
    job::v1::Fault fault;
    fault.set_generation(each.generation);
    fault.set_step(each.step);
    fault.set_message("full");
    EXPECT_EQ(Text(checkpoints::OnFault(job.state.checkpoints, job.state, job.names[0], fault, job.out)), each.request);
    EXPECT_EQ(job.state.checkpoints.pending.has_value(), each.request.empty());
    EXPECT_EQ(Logs(job.out).size(), each.request.empty() ? 1 : 0) << "or it is logged by whom it concerns";
  }
}

TEST(CheckpointsConcernTest, TheEndIsSavedAgainAfterLongerWaitsUntilTheJobFails) {
  CoreOptions options = Options();
  options.final_save_wait = base::seconds(100);
  options.max_fruitless = 2;
  Job job(options);
  std::vector<double> waits;
  std::string request;
  for (double now = 0; request.empty() && now < 1000; now += waits.back()) {
    const auto failure = checkpoints::FailedAtEnd(job.state.checkpoints, job.state, "no space", At(now));
    waits.push_back(base::ToSeconds(failure.wait));
    request = Text(failure.request);
  }
  EXPECT_THAT(waits, ElementsAre(1, 2, 4, 8, 16, 30, 30, 30, 30));
  EXPECT_EQ(request, "fail, retryable: no space");
}

TEST(RestoringConcernTest, WhatASearchMeans) {
  const auto at = [](int64_t step, int64_t rows = 100) {
    Ledger ledger = *Ledger::Create(rows, 2, 10);
    EXPECT_TRUE(ledger.ResetTo(step).ok());
    return CheckpointPosition{fmt::format("step-{}", step), 1, step, ledger.ToRecord()};
  };
  CheckpointSearch newest, older, only, none, damaged, refused, foreign;
  newest.newest = at(8);
  older.newest = only.newest = at(5);
  older.rejected = {"step-8: damaged"};
  damaged.rejected = {"step-8: damaged"};
  refused.refused = "the job names another one";
  foreign.newest = at(8, 90);
  struct Case {
    const char* name;
    absl::StatusOr<CheckpointSearch> found;
    int64_t last;  // step of the journal
    std::string request;
    bool retries, adopted;
    std::string why_older;
  };
  const std::vector<Case> cases = {
      {"the newest", newest, 8, "", false, true, ""},
      {"an older one", older, 8, "", false, true,
       "the job continues from the checkpoint of step 5, because a newer one cannot be restored: step-8: damaged"},
      {"the journal knows a newer one", only, 8, "", false, true,
       "the job continues from the checkpoint of step 5, because a newer one cannot be restored: that of step 8 is no "
       "longer on the volume"},
      {"none, and none was saved", none, 0, "", false, false, ""},
      {"an error", base::Unavailable("no answer"), 8, "", true, false, ""},
      {"a refusal", refused, 8, "fail: the job names another one", false, false, ""},
      {"another job's", foreign, 8, "", false, false, ""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    job.state.checkpoints.last_step = each.last;
    restoring::Search(job.state.restoring, job.state, At(0), job.out);
    const restoring::SearchResult result = restoring::OnFound(job.state.restoring, job.state, each.found, job.out);
    EXPECT_EQ(Text(result.request), each.request);
    EXPECT_EQ(result.retry_after.has_value(), each.retries);
    EXPECT_EQ(result.adopted, each.adopted);
    EXPECT_EQ(job.state.restoring.why_older, each.why_older);
    EXPECT_FALSE(job.state.restoring.finding);
  }
  Job job;
  job.state.checkpoints.last_step = 8;
  for (const auto& [found, text] : {std::pair{none, "the volume has none"}, std::pair{damaged, "step-8: damaged"}}) {
    const Request request = restoring::OnFound(job.state.restoring, job.state, found, job.out).request;
    EXPECT_THAT(Text(request), testing::StartsWith(fmt::format(
                                   "fail: no checkpoint can be restored, although step 8 was saved ({})", text)));
  }
}

TEST(RestoringConcernTest, ACheckpointThatOneMemberCannotReadIsTriedThreeTimes) {
  Job job;
  job.state.restoring.position = CheckpointPosition{"step-8", 1, 8, {}};
  job::v1::Fault fault;
  fault.set_message("timed out");
  for (const bool skipped : {false, false, true}) {
    job.Prepare(job::v1::STATE_ORIGIN_CHECKPOINT);
    fault.set_generation(job.state.generations.next->generation);
    EXPECT_EQ(Text(restoring::OnFault(job.state.restoring, job.state, job.names[0], fault, job.out)),
              fmt::format("abandon, {}: step-8: job-0-a-0 could not restore its part: timed out",
                          skipped ? "a decision" : "a fault"));
    EXPECT_EQ(job.state.restoring.unrestorable.contains("step-8"), skipped);
  }
  EXPECT_FALSE(job.state.restoring.unrestorable["step-8"].damaged);
}

TEST(ExportedModelConcernTest, WhatKeepsTheBestModel) {
  using exported_model::Keep;
  struct Case {
    const char* name;
    std::function<void(Job&)> prepare;
    Keep keep;
  };
  const std::vector<Case> cases = {
      {"the first evaluated model", [](Job&) {}, Keep::kSave},
      {"its checkpoint is complete",
       [](Job& job) { job.state.checkpoints.last_step = 5, job.state.checkpoints.last_folder = "step-5"; }, Keep::kNow},
      {"but damaged",
       [](Job& job) {
         job.state.checkpoints.last_step = 5, job.state.checkpoints.last_folder = "step-5",
         job.state.checkpoints.last_is_damaged = true;
       },
       Keep::kSave},
      {"it is being written", [](Job& job) { job.state.checkpoints.pending.emplace(); }, Keep::kWait},
      {"it could not be written just now", [](Job& job) { recovery::RetryAt(job.state.recovery, At(9)); }, Keep::kWait},
      {"it has been given up", [](Job& job) { job.state.best.unsaved = 5; }, Keep::kNothing},
      {"a better one is kept", [](Job& job) { job.state.best.kept.emplace().mutable_model()->set_value(0.9); },
       Keep::kNothing},
      {"training went on", [](Job& job) { job.Commit(6); }, Keep::kNothing},
  };
  CoreOptions options = Options();
  options.selection.metric = "auc";
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job(options);
    job.Train();
    job.Commit(5);
    job.state.evaluation.curve.Add(*job.state.training.ledger, 5, {{"auc", 0.7}}, Now(0).wall);
    each.prepare(job);
    EXPECT_EQ(exported_model::NextKeep(job.state, At(1)), each.keep);
  }
}

TEST(ExportedModelConcernTest, AnUnsavedModelIsGivenUpAfterThreeAttempts) {
  CoreOptions options = Options();
  options.selection.metric = "auc";
  Job job(options);
  job.Train();
  job.Commit(5);
  job.state.evaluation.curve.Add(*job.state.training.ledger, 5, {{"auc", 0.7}}, Now(0).wall);
  std::vector<double> waits;
  while (const auto wait = exported_model::NotSaved(job.state.best, job.state, job.out)) {
    waits.push_back(base::ToSeconds(*wait));
    ASSERT_LT(waits.size(), 10);
  }
  EXPECT_THAT(waits, ElementsAre(1, 2, 4));
  EXPECT_THAT(Logs(job.out), ElementsAre("the model of step 5 is the best so far, but could not be saved in 3 "
                                         "attempts: none is kept"));
}

}  // namespace
}  // namespace medley::worker::concern
