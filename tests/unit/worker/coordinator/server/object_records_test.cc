// The journal, the lines and the log of a job whose folder is in an object store.
#include <gmock/gmock.h>

#include <memory>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/places/fake_store.h"
#include "worker/coordinator/server/journal.h"
#include "worker/coordinator/server/log_files.h"
#include "worker/coordinator/server/step_log.h"
#include "worker/object_files/object_files.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

class ObjectRecordsTest : public testing::Test {
 protected:
  ObjectRecordsTest() {
    object_store::Settings settings;
    settings.path_style = true;
    settings.endpoint = "https://store";
    const auto store = std::make_shared<object_store::ObjectStore>(
        settings, clock_, 1, object_store::Limits{.attempts = 1}, objects_.exchange());
    volume_ = Volume("s3://bucket/job", std::make_shared<ObjectFiles>(store, store));
  }
  static job::v1::CoordinatorState State(int64_t generation) {
    job::v1::CoordinatorState state;
    state.set_last_generation(generation);
    return state;
  }
  static Claim Term(int64_t term) { return {term, "10.0.0.1:7070", 1, "a"}; }
  int64_t Restored(int64_t term) {
    const auto journal = Journal::Open(volume_, Term(term));
    EXPECT_THAT(journal.status(), IsOk());
    return journal.ok() && (*journal)->restored() ? (*journal)->restored()->last_generation() : 0;
  }
  std::vector<std::string> Keys(const std::string& with) const {
    std::vector<std::string> keys;
    for (const std::string& key : objects_.Keys()) {
      if (key.find(with) != std::string::npos) keys.push_back(key);
    }
    return keys;
  }
  std::string Lines(const std::string& folder) const {
    std::string lines;
    for (const std::string& key : Keys(folder)) lines += objects_.Get(key);
    return lines;
  }

  FakeStore objects_;
  base::SystemClock clock_;
  Volume volume_;
};

TEST_F(ObjectRecordsTest, TheLargestNumberCountsAndTwoRecordsStay) {
  {
    auto journal = *Journal::Open(volume_, Term(1));
    EXPECT_FALSE(journal->restored());
    for (int64_t generation = 1; generation <= 12; ++generation) {
      ASSERT_THAT(journal->Append(State(generation)), IsOk());
    }
    EXPECT_EQ(Keys("journal").size(), 2U);
  }
  EXPECT_EQ(Restored(2), 12);
  EXPECT_THAT(Keys("journal"), ElementsAre("bucket/job/journal-00000002-00000001-a.00000001"));
}

// A request that its sender gave up is carried out after later ones.
TEST_F(ObjectRecordsTest, ARecordThatComesLateDoesNotSetTheJournalBack) {
  auto journal = *Journal::Open(volume_, Term(1));
  ASSERT_THAT(journal->Append(State(1)), IsOk());
  const std::string late = Keys("journal").back();
  const std::string bytes = objects_.Get(late);
  objects_.fault = [](const http_client::Request& request) { return request.method == "PUT" ? 500 : 0; };
  EXPECT_THAT(journal->Append(State(2)), StatusIs(absl::StatusCode::kUnavailable));
  objects_.fault = nullptr;
  for (int64_t generation = 3; generation <= 6; ++generation) ASSERT_THAT(journal->Append(State(generation)), IsOk());
  objects_.Put(late, bytes);
  EXPECT_EQ(Restored(1), 6);
}

TEST_F(ObjectRecordsTest, WhatAFormerCoordinatorWritesLateIsNotRead) {
  auto former = *Journal::Open(volume_, Term(1));
  ASSERT_THAT(former->Append(State(1)), IsOk());
  auto current = *Journal::Open(volume_, Term(2));
  EXPECT_EQ(current->restored()->last_generation(), 1);
  ASSERT_THAT(current->Append(State(2)), IsOk());
  for (int64_t generation = 10; generation < 20; ++generation) ASSERT_THAT(former->Append(State(generation)), IsOk());
  EXPECT_EQ(Restored(2), 2);
  EXPECT_EQ(Restored(3), 2);
}

TEST_F(ObjectRecordsTest, ADamagedRecordIsSkippedForTheOneBefore) {
  auto journal = *Journal::Open(volume_, Term(1));
  for (int64_t generation = 1; generation <= 3; ++generation) ASSERT_THAT(journal->Append(State(generation)), IsOk());
  const std::string last = Keys("journal").back();
  objects_.Put(last, objects_.Get(last).substr(0, 9));
  EXPECT_EQ(Restored(2), 2);
}

TEST_F(ObjectRecordsTest, LinesAreObjectsThatLaterWritersContinue) {
  StepCommand step;
  {
    auto log = *StepLog::Open(volume_, "steps", "00000001-00000001-a", false);
    for (step.range.step = 1; step.range.step <= 30'000; ++step.range.step) ASSERT_THAT(log->Add(step), IsOk());
    EXPECT_EQ(Keys("steps/").size(), 2U) << "full ones of a megabyte; the last one waits for Sync";
    ASSERT_THAT(log->Sync(), IsOk());
    EXPECT_EQ(Keys("steps/").size(), 3U);
  }
  auto next = *StepLog::Open(volume_, "steps", "00000002-00000001-b", true);
  EXPECT_EQ(next->last_step(), 30'000);
  step.range.step = 30'000;
  ASSERT_THAT(next->Add(step), IsOk()) << "reported again";
  step.range.step = 30'001;
  ASSERT_THAT(next->Add(step), IsOk());
  ASSERT_THAT(next->Sync(), IsOk());
  const std::string lines = Lines("steps/");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 30'002) << "the steps, and from where the second one counts";
  EXPECT_THAT(lines, HasSubstr("{\"rollback_to\":30000,"));
  EXPECT_LT(lines.find("\"step\":30000,"), lines.find("\"step\":30001,"));
}

TEST_F(ObjectRecordsTest, LinesWaitForAStoreThatFails) {
  auto log = *StepLog::Open(volume_, "steps", "00000001-00000001-a", false);
  StepCommand step;
  step.range.step = 1;
  ASSERT_THAT(log->Add(step), IsOk());
  objects_.fault = [](const http_client::Request&) { return 503; };
  EXPECT_THAT(log->Sync(), StatusIs(absl::StatusCode::kUnavailable));
  step.range.step = 2;
  ASSERT_THAT(log->Add(step), IsOk());
  objects_.fault = nullptr;
  ASSERT_THAT(log->Sync(), IsOk());
  EXPECT_THAT(Lines("steps/"), testing::AllOf(HasSubstr("\"step\":1,"), HasSubstr("\"step\":2,")));
}

TEST_F(ObjectRecordsTest, TheLogOfATermGoesOnInItsObject) {
  LogBuffer buffer;
  {
    auto logs = *LogFiles::Open(volume_, 3);
    buffer.Add("first\n");
    ASSERT_THAT(logs->Drain(buffer), IsOk());
  }
  auto logs = *LogFiles::Open(volume_, 3);
  buffer.Add("second\n");
  ASSERT_THAT(logs->Drain(buffer), IsOk());
  EXPECT_THAT(*ReadLogFiles(volume_), testing::AllOf(HasSubstr("first"), HasSubstr("second")));
  EXPECT_EQ(Keys("logs/").size(), 1U);
}

}  // namespace
}  // namespace medley::worker
