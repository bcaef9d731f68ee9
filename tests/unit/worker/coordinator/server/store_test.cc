// Tests the journal, steps.jsonl and the rendezvous store.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/coordinator/server/journal.h"
#include "worker/coordinator/server/rendezvous.h"
#include "worker/coordinator/server/step_log.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-coordinator"); }
  void TearDown() override { base::RemoveTempDir(root_); }
  static job::v1::CoordinatorState State(int64_t generation) {
    job::v1::CoordinatorState state;
    state.set_last_generation(generation);
    state.set_message(std::string(50, 'x'));
    return state;
  }
  static Claim Term(int64_t term) { return {term, "10.0.0.1:7070", 1, "a"}; }
  fs::path root_;
};

TEST_F(StoreTest, OnlyTheLastRecordMatters) {
  {
    auto journal = *Journal::Open(root_ / "deep");
    EXPECT_FALSE(journal->restored());
    for (int64_t generation = 1; generation <= 3; ++generation) ASSERT_THAT(journal->Append(State(generation)), IsOk());
  }
  EXPECT_EQ((*Journal::Open(root_ / "deep"))->restored()->last_generation(), 3);
}

TEST_F(StoreTest, ACoordinatorContinuesTheJournalOfTheTermBefore) {
  {
    auto first = *Journal::Open(root_);  // before coordinators had terms
    ASSERT_THAT(first->Append(State(1)), IsOk());
  }
  auto second = *Journal::Open(root_, Term(1));
  EXPECT_EQ(second->restored()->last_generation(), 1);
  ASSERT_THAT(second->Append(State(2)), IsOk());
  auto third = *Journal::Open(root_, Term(10));
  EXPECT_EQ(third->restored()->last_generation(), 2);
  // Older ones are removed. The reserve belongs to all.
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 2);
}

TEST_F(StoreTest, WhatAFormerCoordinatorWritesLateTouchesNoOther) {
  auto former = *Journal::Open(root_, Term(1));
  ASSERT_THAT(former->Append(State(1)), IsOk());
  auto current = *Journal::Open(root_, Term(2));
  ASSERT_THAT(current->Append(State(2)), IsOk());
  // Enough to be compacted, which writes the file anew.
  job::v1::CoordinatorState large = State(9);
  large.set_message(std::string(3 << 20, 'x'));
  for (int i = 0; i < 3; ++i) ASSERT_THAT(former->Append(large), IsOk());
  EXPECT_EQ((*Journal::Open(root_, Term(2)))->restored()->last_generation(), 2);
}

// The successor died before it wrote its first record.
TEST_F(StoreTest, AnEmptyJournalOfALaterTermIsSkipped) {
  {
    auto former = *Journal::Open(root_, Term(1));
    ASSERT_THAT(former->Append(State(1)), IsOk());
  }
  std::ofstream(root_ / "journal-00000002-00000001-a") << "";
  std::ofstream(root_ / "journal-00000002-00000001-a.tmp.abcdef") << "rubbish";
  EXPECT_EQ((*Journal::Open(root_, Term(3)))->restored()->last_generation(), 1);
}

TEST_F(StoreTest, StepsThatAFormerCoordinatorAddsLateDoNotCount) {
  const fs::path path = root_ / "steps.jsonl";
  const auto step = [](int64_t number) { return StepCommand{{number, 0, (number - 1) * 10, 10}, 1, 0.5}; };
  EXPECT_EQ((*StepLog::Open(path, /*take_over=*/true))->last_step(), 0);  // there is no file yet
  for (const int64_t last : {1, 2000}) {                                  // a short file, and one of several blocks
    auto former = *StepLog::Open(path);
    for (int64_t s = former->last_step() + 1; s <= last; ++s) ASSERT_THAT(former->Add(step(s)), IsOk());
    ASSERT_THAT(former->Sync(), IsOk());
    auto current = *StepLog::Open(path, /*take_over=*/true);
    EXPECT_EQ(current->last_step(), last);
    ASSERT_THAT(former->Add(step(last + 1)), IsOk());
    ASSERT_THAT(current->Add(step(last + 1)), IsOk());
    const std::string text = *base::ReadFile(path);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), last + 1);
  }
}

TEST_F(StoreTest, LinesSayWhenAStepWasCommittedAndWhatTrainersWaitedFor) {
  const fs::path path = root_ / "steps.jsonl";
  const base::WallTime at = base::WallTime(base::seconds(1'700'000'000)) + base::milliseconds(250);
  StepCommand step{.range = {1, 0, 0, 10}, .generation = 1, .loss = 0.5, .at = at};
  {
    auto log = *StepLog::Open(path);
    ASSERT_THAT(log->Add(step), IsOk());
    step = {.range = {2, 0, 10, 10}, .generation = 1, .loss = 0.5, .at = at, .data_seconds = 0.02};
    step.checkpoint_seconds = 1.5;
    ASSERT_THAT(log->Add(step), IsOk());
    ASSERT_THAT(log->Add({.range = {3, 0, 20, 10}, .generation = 2, .loss = 0.5}), IsOk());
    EXPECT_EQ(log->last().at, base::WallTime());
    ASSERT_THAT(log->Rollback({2, 3}), IsOk());
    ASSERT_THAT(log->Add({.range = {3, 0, 20, 10}, .generation = 3, .loss = 0.5, .at = at}), IsOk());
  }
  EXPECT_EQ(*base::ReadFile(path),
            R"({"step":1,"data_epoch":0,"first":0,"count":10,"generation":1,"loss":0.5,"unix_seconds":1700000000.250}
{"step":2,"data_epoch":0,"first":10,"count":10,"generation":1,"loss":0.5,"unix_seconds":1700000000.250,"data_seconds":0.020,"checkpoint_seconds":1.500}
{"step":3,"data_epoch":0,"first":20,"count":10,"generation":2,"loss":0.5}
{"rollback_to":2,"generation":3}
{"step":3,"data_epoch":0,"first":20,"count":10,"generation":3,"loss":0.5,"unix_seconds":1700000000.250}
)");
  EXPECT_EQ((*StepLog::Open(path))->last().step, 3);
  EXPECT_LT(at - (*StepLog::Open(path))->last().at, base::milliseconds(1));
}

TEST_F(StoreTest, EvaluationsAreLinesThatARollbackTakesBack) {
  const fs::path path = root_ / "metrics.jsonl";
  EvaluationCommand evaluation;
  evaluation.generation = 2;
  evaluation.record.set_epochs(1);
  (*evaluation.record.mutable_metrics())["auc"] = 0.75;
  auto log = *StepLog::Open(path);
  for (const int64_t step : {10, 20, 20}) {  // the last is a repetition after a restart
    evaluation.record.set_step(step);
    ASSERT_THAT(log->Add(evaluation), IsOk());
  }
  ASSERT_THAT(log->Rollback({15, 3}), IsOk());
  evaluation.record.set_loss(0.5);
  ASSERT_THAT(log->Add(evaluation), IsOk());
  EXPECT_EQ(*base::ReadFile(path),
            R"({"step":10,"epochs":1,"generation":2,"loss":null,"metrics":{"auc":0.75},"unix_seconds":0}
{"step":20,"epochs":1,"generation":2,"loss":null,"metrics":{"auc":0.75},"unix_seconds":0}
{"rollback_to":15,"generation":3}
{"step":20,"epochs":1,"generation":2,"loss":0.5,"metrics":{"auc":0.75},"unix_seconds":0}
)");
  EXPECT_EQ((*StepLog::Open(path))->last_step(), 20);
}

// Another process may have written it: what it becomes in memory is bounded.
TEST_F(StoreTest, ALineLongerThanAnyIsNotParsed) {
  const fs::path path = root_ / "steps.jsonl";
  const std::string good = R"({"step":3})"
                           "\n";
  std::ofstream(path) << good << R"({"step":4,"a":[0)" << std::string(size_t{2} << 20, ' ') << "]}\n";
  EXPECT_EQ((*StepLog::Open(path))->last_step(), 3);
  EXPECT_EQ(*base::ReadFile(path), good);
  std::ofstream(path).flush();
  fs::resize_file(path, uintmax_t{1} << 36);  // without a line end
  EXPECT_THAT(StepLog::Open(path).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(StoreTest, AJournalLongerThanAnyIsNotRead) {
  job::v1::CoordinatorState state;
  state.set_last_generation(7);
  ASSERT_THAT((*Journal::Open(root_))->Append(state), IsOk());
  const std::string whole = *base::ReadFile(root_ / "journal");
  std::ofstream(root_ / "journal", std::ios::binary) << whole << std::string("\xff\xff\xff\x7f", 4) << "crc?"
                                                     << "x";
  EXPECT_EQ((*Journal::Open(root_))->restored()->last_generation(), 7);  // no record has 2 GiB
  fs::resize_file(root_ / "journal", uintmax_t{1} << 36);
  EXPECT_THAT(Journal::Open(root_).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(StoreTest, ATornTailIsCutOff) {
  base::Rng rng(11);
  for (int round = 0; round < 50; ++round) {
    fs::remove(root_ / "journal");
    {
      auto journal = *Journal::Open(root_);
      ASSERT_THAT(journal->Append(State(1)), IsOk());
    }
    const auto whole = fs::file_size(root_ / "journal");
    {
      auto journal = *Journal::Open(root_);
      ASSERT_THAT(journal->Append(State(2)), IsOk());
    }
    const auto longer = fs::file_size(root_ / "journal");
    fs::resize_file(root_ / "journal", whole + rng.Below(longer - whole));
    auto journal = *Journal::Open(root_);
    ASSERT_TRUE(journal->restored());
    EXPECT_EQ(journal->restored()->last_generation(), 1);
    ASSERT_THAT(journal->Append(State(3)), IsOk());
    EXPECT_EQ((*Journal::Open(root_))->restored()->last_generation(), 3);
  }
}

TEST_F(StoreTest, TheJournalIsCompacted) {
  auto journal = *Journal::Open(root_);
  job::v1::CoordinatorState big = State(1);
  big.set_message(std::string(1 << 20, 'x'));
  for (int64_t generation = 1; generation <= 20; ++generation) {
    big.set_last_generation(generation);
    ASSERT_THAT(journal->Append(big), IsOk());
    EXPECT_LT(fs::file_size(root_ / "journal"), 7u << 20);
  }
  EXPECT_EQ((*Journal::Open(root_))->restored()->last_generation(), 20);
}

TEST_F(StoreTest, TheLastLineOfALongFileDecides) {
  const fs::path path = root_ / "steps.jsonl";
  const auto step = [](int64_t s) { return StepCommand{{s, 0, (s - 1) * 10, 10}, 1, 0.5}; };
  {
    auto log = *StepLog::Open(path);
    for (int64_t s = 1; s <= 2000; ++s) ASSERT_THAT(log->Add(step(s)), IsOk());
  }
  const auto whole = fs::file_size(path);
  ASSERT_GT(whole, 100u << 10);
  std::ofstream(path, std::ios::app) << "{\"step\":2001,\"da";  // an incomplete line
  {
    auto log = *StepLog::Open(path);
    EXPECT_EQ(log->last_step(), 2000);
    EXPECT_EQ(fs::file_size(path), whole);
    ASSERT_THAT(log->Rollback({1990, 2}), IsOk());
  }
  EXPECT_EQ((*StepLog::Open(path))->last_step(), 1990);
  std::ofstream(path, std::ios::app) << "rubbish\n";  // then all lines are read
  EXPECT_EQ((*StepLog::Open(path))->last_step(), 1990);
}

TEST_F(StoreTest, StepsAreWrittenOnceAndCutAtARollback) {
  const fs::path path = root_ / "steps.jsonl";
  const auto step = [](int64_t s) { return StepCommand{{s, 0, (s - 1) * 10, 10}, 1, 0.5}; };
  {
    auto log = *StepLog::Open(path);
    for (int64_t s = 1; s <= 3; ++s) ASSERT_THAT(log->Add(step(s)), IsOk());
    ASSERT_THAT(log->Rollback({1, 2}), IsOk());
    ASSERT_THAT(log->Add({{2, 0, 10, 10}, 2, std::numeric_limits<double>::quiet_NaN()}), IsOk());
  }
  std::ofstream(path, std::ios::app) << "{\"step\":3,\"da";  // an incomplete line
  auto log = *StepLog::Open(path);
  EXPECT_EQ(log->last_step(), 2);
  ASSERT_THAT(log->Add(step(2)), IsOk());  // reported twice
  ASSERT_THAT(log->Add(step(3)), IsOk());
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line.substr(0, 18));
  EXPECT_THAT(lines, ElementsAre("{\"step\":1,\"data_ep", "{\"step\":2,\"data_ep", "{\"step\":3,\"data_ep",
                                 "{\"rollback_to\":1,\"", "{\"step\":2,\"data_ep", "{\"step\":3,\"data_ep"));
}

TEST(RendezvousTest, WaitsForEveryKey) {
  RendezvousStore store;
  ASSERT_THAT(store.Put(1, "a", "1"), IsOk());
  std::jthread later([&] { (void)store.Put(1, "b", "2"); });
  const auto values = store.Get(1, {"b", "a"}, {}, [] { return false; });
  ASSERT_THAT(values, IsOk());
  EXPECT_THAT(*values, ElementsAre("2", "1"));
}

TEST(RendezvousTest, OldGenerationsAreFenced) {
  RendezvousStore store;
  ASSERT_THAT(store.Put(1, "a", "1"), IsOk());
  EXPECT_THAT(store.Put(1, "a", "other"), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(store.Put(1, "a", "1"), IsOk());
  std::jthread later([&] { store.Fence(2); });
  EXPECT_THAT(store.Get(1, {"absent"}, {}, [] { return false; }), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store.Put(1, "b", "1"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store.Get(2, {"x"}, {}, [] { return true; }), StatusIs(absl::StatusCode::kCancelled));
}

TEST(RendezvousTest, IsBounded) {
  RendezvousStore store({.bytes = 10, .keys = 2});
  EXPECT_THAT(store.Put(1, "a", "12345678"), IsOk());
  EXPECT_THAT(store.Put(1, "b", "1"), StatusIs(absl::StatusCode::kResourceExhausted));
  store.Fence(2);
  EXPECT_THAT(store.Put(2, "b", "1"), IsOk());
}

}  // namespace
}  // namespace medley::worker
