// Tests the coordinator's account of the units in force, and of the rows that members keep.
#include "worker/coordinator/core/activity.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/coordinator/core/core_fixture.h"
#include "worker/coordinator/core/meter.h"

namespace medley::worker {
namespace {

using goodput::Amounts;
using goodput::Category;

constexpr double kNear = 1e-6;

class MeterTest : public testing::Test {
 protected:
  Instant Now() const {
    return {base::SteadyTime(base::FromSeconds(1000 + seconds_)),
            base::WallTime(base::seconds(1'700'000'000)) +
                std::chrono::duration_cast<base::WallTime::duration>(base::FromSeconds(seconds_))};
  }
  void Pass(double seconds, Category category, int units = 2) {
    (void)meter_.Hold(Now(), before_, 0);
    before_ = Activity{category, {{"a", units}}, {}};
    (void)meter_.Hold(Now(), before_, 0);
    seconds_ += seconds;
    (void)meter_.Hold(Now(), before_, 0);
  }
  // Two units train for a second a step.
  void Train(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      Pass(1, Category::kTraining);
      meter_.Committed(Now().steady, step);
    }
  }
  const Amounts& Of(const std::string& pool) { return meter_.account().pools.at(pool); }
  job::v1::UnitAccount Journal() {
    job::v1::UnitAccount account;
    meter_.Fill(Now().wall, true, account);
    return account;
  }

  ActivityMeter meter_;
  std::optional<Activity> before_;
  double seconds_ = 0;
};

TEST_F(MeterTest, NothingIsCountedBeforeAGenerationIsInForce) {
  Pass(5, Category::kTraining);
  EXPECT_TRUE(meter_.account().pools.empty());
  meter_.Begin(Now().wall, 0, 0);
  Pass(5, Category::kTraining);
  EXPECT_NEAR(Of("a")[Category::kTraining], 10, kNear);
  EXPECT_NEAR(Of(goodput::kCoordinatorPool)[Category::kTraining], 5, kNear);
}

TEST_F(MeterTest, TrainingSinceTheStepIsLost) {
  meter_.Begin(Now().wall, 0, 0);
  Train(1, 10);
  Pass(0.5, Category::kTraining);  // a step that nobody ends
  meter_.SetBack(4);
  EXPECT_NEAR(Of("a")[Category::kTraining], 8, kNear);
  EXPECT_NEAR(Of("a")[Category::kLost], 13, kNear);
  EXPECT_NEAR(Of(goodput::kCoordinatorPool)[Category::kLost], 6.5, kNear);
  Train(5, 6);
  meter_.SetBack(5);
  EXPECT_NEAR(Of("a")[Category::kTraining], 10, kNear);
  EXPECT_NEAR(Of("a")[Category::kLost], 15, kNear);
}

TEST_F(MeterTest, FewMarksAreKeptOfALongJob) {
  meter_.Begin(Now().wall, 0, 0);
  Train(1, 5000);
  EXPECT_LE(Journal().trained_size(), 2 * 18);
  meter_.SetBack(2345);
  EXPECT_NEAR(Of("a")[Category::kTraining], 2 * 2345, 2);
  EXPECT_NEAR(Of("a").Sum(), 10000, kNear);
}

TEST_F(MeterTest, WhatIsLostSinceASaveIsKnownExactly) {
  meter_.Begin(Now().wall, 0, 0);
  Train(1, 1000);
  const int64_t saved = 1003;  // between two marks that are far apart by now, of steps that take unlike times
  for (int64_t step = 1001; step <= 1040; ++step) {
    Pass(step <= saved ? 1 : 3, Category::kTraining);
    const int64_t saves[] = {step < saved ? 0 : saved, 0, step < saved ? saved : 0};
    meter_.Committed(Now().steady, step, saves);
  }
  EXPECT_LE(Journal().trained_size(), 2 * 19);
  meter_.SetBack(saved);
  EXPECT_NEAR(Of("a")[Category::kTraining], 2 * 1003, kNear);
  EXPECT_NEAR(Of("a")[Category::kLost], 2 * 3 * 37, kNear);
}

// Its last step was committed with the one before, and steps.jsonl says when.
TEST_F(MeterTest, ARestartedCoordinatorCountsTrainingUntilTheLastLine) {
  meter_.Begin(Now().wall, 0, 0);
  Train(1, 10);
  const job::v1::UnitAccount journal = Journal();
  Pass(7, Category::kTraining);  // slow steps, which the journal does not know
  ActivityMeter restarted;
  restarted.Restore(journal, false, {12, Now().wall}, Now().wall);
  seconds_ += 20;
  for (const char* member : {"t-0", "t-1"}) restarted.Returned(member, "a", Category::kRecovery, Now().wall);
  restarted.SetBack(12);
  const auto& pools = restarted.account().pools;
  EXPECT_NEAR(pools.at("a")[Category::kTraining], 2 * 17, kNear);
  EXPECT_NEAR(pools.at("a")[Category::kRecovery], 2 * 20, kNear);
  EXPECT_NEAR(pools.at(goodput::kCoordinatorPool)[Category::kTraining], 17, kNear);
}

TEST_F(MeterTest, MembersStoodStillUntilTheyReturnToARestartedCoordinator) {
  meter_.Begin(Now().wall, 0, 0);
  Train(1, 10);
  const job::v1::UnitAccount journal = Journal();
  const goodput::Account journaled = meter_.account();
  Train(11, 12);  // which the journal does not know
  ActivityMeter restarted;
  restarted.Restore(journal, false, {}, Now().wall);
  EXPECT_EQ(restarted.account(), journaled);
  seconds_ += 28;
  for (const char* member : {"t-0", "t-1", "t-1"}) restarted.Returned(member, "a", Category::kRecovery, Now().wall);
  EXPECT_NEAR(restarted.account().pools.at("a")[Category::kRecovery], 60, kNear);
  restarted.SetBack(12);  // as the members say
  EXPECT_NEAR(restarted.account().pools.at("a")[Category::kTraining], 24, kNear);
  EXPECT_NEAR(restarted.account().pools.at("a")[Category::kRecovery], 56, kNear);
  restarted.Begin(Now().wall, 12, 0);
  EXPECT_EQ(restarted.account().id, meter_.account().id);
  restarted.SetBack(6);
  EXPECT_NEAR(restarted.account().pools.at("a")[Category::kTraining], 12, kNear);
  EXPECT_NEAR(restarted.account().pools.at("a")[Category::kLost], 12, kNear);
}

TEST_F(MeterTest, WaitingAndCopyingAreNotTraining) {
  meter_.Begin(Now().wall, 0, 0);
  Pass(10, Category::kTraining);
  job::v1::Progress progress;
  progress.set_data_seconds(3);
  progress.set_checkpoint_seconds(2);
  meter_.Waited("a", progress);
  EXPECT_NEAR(Of("a")[Category::kTraining], 15, kNear);
  EXPECT_NEAR(Of("a")[Category::kDataWait], 3, kNear);
  EXPECT_NEAR(Of("a")[Category::kCheckpoint], 2, kNear);
  progress.set_data_seconds(100);  // more than there was
  meter_.Waited("a", progress);
  EXPECT_NEAR(Of("a").Sum(), 20, kNear);
}

TEST_F(MeterTest, ChangesAreLoggedWithTheirTime) {
  meter_.Begin(Now().wall, 0, 0);
  (void)meter_.Hold(Now(), Activity{Category::kTraining, {{"a", 2}}, {}}, 3);
  seconds_ += 2;
  EXPECT_EQ(meter_.Hold(Now(), Activity{Category::kTraining, {{"a", 2}}, {}}, 4), std::nullopt);
  seconds_ += 1;
  EXPECT_EQ(meter_.Hold(Now(), Activity{Category::kMove, {{"a", 2}, {"b", 1}}, {{"b", 1}}}, 5),
            "activity move since=1700000002.000 step=5 units=a:2,b:1,b:1:idle");
}

class ActivityTest : public CoreTest {
 protected:
  double Seconds(const std::string& pool, Category category) {
    const auto& pools = core_.state().meters.activity.account().pools;
    const auto found = pools.find(pool);
    return found == pools.end() ? 0 : found->second[category];
  }
};

TEST_F(ActivityTest, UnitsInForceTrainAndRecover) {
  Start();
  Advance(base::seconds(3));
  EXPECT_TRUE(core_.state().meters.activity.account().id.empty());
  Ready(0);
  Advance(base::seconds(3));
  const std::string servers = plan_.slots(2).pool();
  EXPECT_NEAR(Seconds("a", Category::kTraining), 6, kNear);  // two trainers
  EXPECT_NEAR(Seconds(servers, Category::kTraining), 3, kNear);
  core_.OnLost(plan_.slots(0).member(), "i-" + plan_.slots(0).member(), Now());
  Take();
  Advance(base::seconds(2));
  EXPECT_NEAR(Seconds("a", Category::kTraining), 6, kNear);
  EXPECT_NEAR(Seconds("a", Category::kRecovery), 2, kNear);  // the other trainer
  EXPECT_NEAR(Seconds(servers, Category::kRecovery), 2, kNear);
  EXPECT_NEAR(Seconds(goodput::kCoordinatorPool, Category::kRecovery), 2, kNear);
}

// The state was lost before its coordinator was.
TEST_F(ActivityTest, MembersThatWaitForACheckpointStoodStillUntilAnotherCoordinatorLed) {
  job::v1::CoordinatorState journal;
  journal.set_from_generation(1);
  journal.set_last_generation(1);
  journal.mutable_units()->set_id("1");
  const auto at = base::ToSeconds(Now().wall.time_since_epoch()) - 5;
  journal.mutable_units()->mutable_at()->set_seconds(static_cast<int64_t>(at));
  CoordinatorCore core(Options(), Now(), journal);
  job::v1::SessionRequest message;
  message.mutable_hello()->set_role(job::v1::MEMBER_ROLE_TRAINER);
  message.mutable_hello()->set_pool("a");
  const auto hello = [&](const std::string& member, int generation, Instant now) {
    message.mutable_hello()->set_member(member);
    message.mutable_hello()->set_instance("i-" + member);
    message.mutable_hello()->set_held_generation(generation);
    core.OnMessage(member, "i-" + member, message, now);
  };
  const Instant soon{Now().steady, Now().wall + base::seconds(1)};
  for (const char* member : {"t-0", "t-1", "t-1"}) hello(member, 0, soon);  // whether they are new is not known
  const auto recovery = [&] { return core.state().meters.activity.account().pools.at("a")[Category::kRecovery]; };
  EXPECT_NEAR(recovery(), 2, kNear);
  const Instant later{Now().steady, Now().wall + base::seconds(4)};
  hello("fresh", 0, later);
  EXPECT_NEAR(recovery(), 2, kNear);
  hello("t-2", 1, later);  // it has trained before
  EXPECT_NEAR(recovery(), 11, kNear);
}

TEST_F(ActivityTest, UnitsOfTheNextGenerationAreNotInForceYet) {
  PrepareSecondPlan();
  const double trained = Seconds("a", Category::kTraining);
  Advance(base::seconds(1));  // the new units start meanwhile
  EXPECT_NEAR(Seconds("a", Category::kTraining), trained + 2, kNear);
  EXPECT_EQ(Seconds("b", Category::kMove), 0);
}

TEST(RowTierMeterTest, AddsUpWhatMembersKeepAndCount) {
  RowTierMeter meter;
  EXPECT_TRUE(meter.empty());
  job::v1::RowTiers tiers;
  tiers.set_memory_rows(10);
  tiers.set_disk_rows(20);
  tiers.set_memory_bytes(100);
  tiers.set_disk_bytes(200);
  tiers.set_pulled_rows(7);
  tiers.set_loaded_rows(5);
  tiers.set_ahead_rows(4);
  tiers.set_left_rows(3);
  tiers.set_wait_seconds(0.25);
  for (const char* member : {"a", "b", "a"}) meter.Add(member, tiers);
  EXPECT_FALSE(meter.empty());
  job::v1::RowTiers sum = meter.Sum();
  EXPECT_EQ(sum.memory_rows(), 20) << "of two members, as each said last";
  EXPECT_EQ(sum.disk_rows(), 40);
  EXPECT_EQ(sum.memory_bytes(), 200);
  EXPECT_EQ(sum.disk_bytes(), 400);
  EXPECT_EQ(sum.pulled_rows(), 21);
  EXPECT_EQ(sum.loaded_rows(), 15);
  EXPECT_EQ(sum.ahead_rows(), 12);
  EXPECT_EQ(sum.left_rows(), 9);
  EXPECT_EQ(sum.wait_seconds(), 0.75);
  meter.Reset();
  tiers.set_pulled_rows(-1000);  // a member does not count down
  meter.Add("c", tiers);
  sum = meter.Sum();
  EXPECT_EQ(sum.memory_rows(), 10);
  EXPECT_EQ(sum.pulled_rows(), 21);
  EXPECT_EQ(sum.loaded_rows(), 20);
}

TEST(DeviceTableMeterTest, AddsUpWhatMembersCountAndForgetsWhereTheyHadTables) {
  DeviceTableMeter meter;
  EXPECT_TRUE(meter.empty());
  job::v1::DeviceTables tables;
  tables.set_place(plan::v1::TABLE_PLACE_CACHE);
  tables.set_used_rows(10);
  tables.set_found_rows(7);
  tables.set_bytes_in(300);
  tables.set_bytes_out(200);
  meter.Add("a", tables);
  tables.set_instead("The plan has more.");
  meter.Add("b", tables);
  EXPECT_FALSE(meter.empty());
  job::v1::DeviceTables sum = meter.Sum();
  EXPECT_EQ(sum.place(), plan::v1::TABLE_PLACE_CACHE);
  EXPECT_EQ(sum.instead(), "The plan has more.");
  EXPECT_EQ(sum.used_rows(), 20);
  EXPECT_EQ(sum.found_rows(), 14);
  EXPECT_EQ(sum.bytes_in(), 600);
  EXPECT_EQ(sum.bytes_out(), 400);
  meter.Reset();
  sum = meter.Sum();
  EXPECT_EQ(sum.place(), plan::v1::TABLE_PLACE_UNSPECIFIED);
  EXPECT_EQ(sum.instead(), "");
  EXPECT_EQ(sum.used_rows(), 20);
}

}  // namespace
}  // namespace medley::worker
