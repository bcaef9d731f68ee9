#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/worker/coordinator/core/concern_fixture.h"

namespace medley::worker::concern {
namespace {

int64_t Lease(Job& job, double seconds, bool even_if_none = false) {
  const int64_t before = job.state.training.ledger->leased();
  training::LeaseSteps(job.state.training, job.state, even_if_none, At(seconds), job.out);
  return job.state.training.ledger->leased() - before;
}

TEST(TrainingConcernTest, WhatProgressMeans) {
  struct Case {
    const char* name;
    int member;  // of Job::names
    int64_t generation, step;
    double loss;
    int64_t state_samples;
    std::string request;
    std::optional<int64_t> commit_to;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Case> cases = {
      {"the last member of three", 2, 1, 1, 4, 10, "", 1},
      {"others are not so far", 0, 1, 2, 4, 20, "", std::nullopt},
      {"an earlier generation", 2, 0, 1, 4, 10, "", std::nullopt},
      {"a step twice", 0, 1, 1, 4, 10, "halt: job-0-a-0 reported step 1 out of order, after step 1", std::nullopt},
      {"a step too far", 0, 1, 3, 4, 10, "halt: job-0-a-0 reported step 3 out of order, after step 1", std::nullopt},
      {"no number", 2, 1, 1, nan, 10, "fail: diverged at step 1", std::nullopt},
      {"another state", 0, 1, 2, 4, 19, "fail: job-0-a-0 counts 19 samples at step 2, the ledger counts 20",
       std::nullopt},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    ASSERT_EQ(Lease(job, 0), 4);
    job::v1::Progress progress;
    progress.set_generation(1);
    progress.set_step(1);
    for (const int member : {0, 1}) {
      training::OnProgress(job.state.training, job.state, job.names[member], progress, At(1));
    }
    progress.set_generation(each.generation);
    progress.set_step(each.step);
    progress.set_loss_sum(each.loss);
    progress.set_loss_samples(10);
    progress.set_state_samples(each.state_samples);
    const training::Progressed result =
        training::OnProgress(job.state.training, job.state, job.names[each.member], progress, At(2));
    EXPECT_EQ(Text(result.request), each.request);
    EXPECT_EQ(result.commit_to, each.commit_to);
  }
}

TEST(TrainingConcernTest, WhatHoldsLeasesBack) {
  struct Case {
    const char* name;
    std::function<void(Job&)> prepare;
    int64_t leased;
  };
  const std::vector<Case> cases = {
      {"nothing", [](Job&) {}, 4},
      {"a suspension", [](Job& job) { ending::Suspend(job.state.ending, "a test", At(9)); }, 0},
      {"a successor", [](Job& job) { job.state.hand_over.successor.emplace(); }, 0},
      {"an evaluation", [](Job& job) { job.state.evaluation.pending.emplace(); }, 0},
      {"a generation that is being prepared", [](Job& job) { job.Prepare(); }, 4},
      {"a generation that is warm", [](Job& job) { job.Prepare(), job.Warm(); }, 0},
      {"a warm generation and a checkpoint",
       [](Job& job) { job.Prepare(), job.Warm(), job.state.checkpoints.pending.emplace(); }, 4},
      {"the last step", [](Job& job) { job.Commit(20); }, 0},
      {"the last but two", [](Job& job) { job.Commit(18); }, 2},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    each.prepare(job);
    EXPECT_EQ(Lease(job, 1), each.leased);
  }
}

TEST(TrainingConcernTest, MembersThatBeginGetAMessageInAnyCase) {
  Job job;
  job.Train();
  ending::Suspend(job.state.ending, "a test", At(9));
  EXPECT_EQ(Lease(job, 1, true), 0);
  EXPECT_EQ(job.out.Take().size(), 3) << "one lease without steps for each member";
}

TEST(TrainingConcernTest, RowsThatDifferAreRefused) {
  struct Case {
    const char* name;
    int64_t ledger_rows, rows0, rows1;
    std::string request;
  };
  const std::vector<Case> cases = {
      {"first generation", 0, 100, 100, ""},
      {"a later one", 100, 100, 100, ""},
      {"none", 0, 0, 100, "job-0-a-0 refuses: the training data has no rows"},
      {"others than before", 90, 100, 100,
       "job-0-a-0 refuses: the training data differs: this member read 100 rows, earlier trainers read 90"},
      {"unlike each other", 0, 100, 99,
       "job-1-a-0 refuses: the training data differs: this member read 99 rows, job-0-a-0 read 100"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    if (each.ledger_rows > 0)
      training::Restore(job.state.training, Ledger::Create(each.ledger_rows, 2, 10)->ToRecord());
    job.Prepare();
    job.Warm();
    job.state.generations.next->members[job.names[0]].rows = each.rows0;
    job.state.generations.next->members[job.names[1]].rows = each.rows1;
    EXPECT_EQ(Text(training::CheckRows(job.state.training, job.state)), each.request);
  }
}

TEST(TrainingConcernTest, ASetBackLedgerForgetsWhatWasNotCommitted) {
  Job job;
  job.Train();
  job.Commit(5);
  ASSERT_EQ(Lease(job, 1), 4);
  job.state.training.losses[6] = {4, 10};
  job.out.Take();
  training::SetBack(job.state.training, 6, 1, job.out);
  const std::vector<Command> commands = job.out.Take();
  ASSERT_EQ(commands.size(), 2);
  const auto* step = std::get_if<StepCommand>(&commands[0]);
  ASSERT_NE(step, nullptr) << "members have applied step 6";
  EXPECT_EQ(step->range.step, 6);
  EXPECT_TRUE(std::isnan(step->loss));
  EXPECT_EQ(std::get<RollbackCommand>(commands[1]).to_step, 6);
  EXPECT_EQ(job.state.training.ledger->committed(), 6);
  EXPECT_EQ(job.state.training.ledger->leased(), 6);
  EXPECT_TRUE(job.state.training.losses.empty());
}

}  // namespace
}  // namespace medley::worker::concern
