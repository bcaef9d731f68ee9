#include "worker/coordinator/core/slow_members.h"
#include "common/model/synchronisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/base/rng.h"
#include "worker/coordinator/core/standbys.h"

namespace medley::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr int kWindow = 8;
constexpr AnomalyPolicy kPolicy{model::AnomalyDetector::kRunningMean, kWindow, 3};

class SlowMembersTest : public testing::Test {
 protected:
  void Begin() {
    members_.Begin(kPolicy, places_, [](const std::string&) { return false; });
  }
  void Add(const std::string& member, const std::string& pool, double share, int stage = 0) {
    places_.push_back({member, "i-" + member, pool, stage, share, "0-4;"});
  }
  // Steps in which each trainer takes its own usual time times its factor, +- 10 %.
  void Train(int steps, const std::map<std::string, double>& factors = {}) {
    for (int i = 0; i < steps; ++i) {
      time_ += base::milliseconds(100);
      for (size_t p = 0; p < places_.size(); ++p) {
        const std::string& name = places_[p].member;
        const auto factor = factors.find(name);
        const double usual = 0.01;
        members_.Add(name, usual * (factor == factors.end() ? 1 : factor->second) * rng_.Uniform(0.9, 1.1), time_);
      }
    }
  }
  std::vector<std::string> Slow(const std::map<int, int>& standing_by = {}) {
    std::vector<std::string> names;
    for (const SlowTrainer& slow : members_.ToLeaveOut(standing_by, time_)) names.push_back(slow.member);
    return names;
  }

  std::vector<TrainerPlace> places_;
  SlowMembers members_{base::seconds(2)};
  base::SteadyTime time_{base::seconds(100)};
  base::Rng rng_{1};
};

TEST_F(SlowMembersTest, TheSlowOneIsLeftOutAfterAWhile) {
  for (const char* name : {"a0", "a1", "a2"}) Add(name, "a", 1.0 / 3);
  Begin();
  Train(100);
  EXPECT_THAT(Slow(), IsEmpty());
  Train(15, {{"a1", 3}});
  EXPECT_THAT(Slow(), IsEmpty()) << "not for long enough";
  Train(20, {{"a1", 3}});
  EXPECT_THAT(Slow(), ElementsAre("a1"));
  const SlowTrainer slow = members_.ToLeaveOut({}, time_).at(0);
  EXPECT_NEAR(slow.usual, 0.01, 0.001);
  EXPECT_NEAR(slow.recent, 0.03, 0.004);
  Train(40);
  EXPECT_THAT(Slow(), IsEmpty()) << "it became fast again before it was left out";
}

// A moment in which it is not slow begins the wait again.
TEST_F(SlowMembersTest, SlownessThatComesAndGoesIsNotEnough) {
  for (const char* name : {"a0", "a1", "a2"}) Add(name, "a", 1.0 / 3);
  Begin();
  Train(100);
  for (int i = 0; i < 20; ++i) {
    Train(12, {{"a1", 3}});
    Train(30);
    ASSERT_THAT(Slow(), IsEmpty());
  }
}

TEST_F(SlowMembersTest, IfAllBecomeSlowNobodyIsLeftOut) {
  for (const char* name : {"a0", "a1", "a2", "a3"}) Add(name, "a", 0.25);
  Begin();
  Train(100);
  Train(100, {{"a0", 4}, {"a1", 4.4}, {"a2", 3.8}, {"a3", 4}});
  EXPECT_THAT(Slow(), IsEmpty());
}

TEST_F(SlowMembersTest, IfAWholePoolBecomesSlowNobodyIsLeftOut) {
  for (const char* name : {"a0", "a1"}) Add(name, "a", 0.1);
  for (const char* name : {"b0", "b1", "b2", "b3"}) Add(name, "b", 0.2);
  Begin();
  Train(100);
  Train(100, {{"a0", 5}, {"a1", 5}});
  EXPECT_THAT(Slow(), IsEmpty());
  Train(100, {{"a0", 5}});
  EXPECT_THAT(Slow(), ElementsAre("a0")) << "the other one of its pool is as fast as usual again";
}

// One of two trainers does the work of both: that takes twice as long.
TEST_F(SlowMembersTest, NobodyIsLeftOutIfTheOthersWouldBeSlower) {
  for (const char* name : {"a0", "a1"}) Add(name, "a", 0.5);
  Begin();
  Train(100);
  Train(100, {{"a0", 1.9}});
  EXPECT_THAT(Slow(), IsEmpty());
  Train(100, {{"a0", 2.8}});
  EXPECT_THAT(Slow(), ElementsAre("a0"));
}

TEST_F(SlowMembersTest, HalfOfAStageTrainsAtLeast) {
  for (const char* name : {"a0", "a1", "a2"}) Add(name, "a", 1.0 / 3);
  Add("b0", "b", 1, 1);
  Begin();
  Train(100);
  Train(100, {{"a0", 5}, {"b0", 5}});
  EXPECT_THAT(Slow(), ElementsAre("a0"));
  EXPECT_THAT(Slow({{0, 1}}), ElementsAre("a0")) << "two of four stand by";
  EXPECT_THAT(Slow({{0, 2}}), IsEmpty()) << "of five, two stand by already";
  Train(100, {{"b0", 5}});
  EXPECT_THAT(Slow(), IsEmpty()) << "the only trainer of a stage";
}

TEST_F(SlowMembersTest, TwoAreLeftOutTogetherTheSlowestFirst) {
  for (const char* name : {"a0", "a1", "a2", "a3", "a4"}) Add(name, "a", 0.2);
  Begin();
  Train(100);
  Train(100, {{"a0", 4}, {"a3", 6}});
  EXPECT_THAT(Slow(), ElementsAre("a3", "a0"));
  EXPECT_THAT(Slow({{0, 1}}), ElementsAre("a3", "a0")) << "three of six stand by then";
  EXPECT_THAT(Slow({{0, 2}}), ElementsAre("a3")) << "three of seven";
  EXPECT_THAT(Slow({{0, 3}}), ElementsAre("a3")) << "four of eight";
  EXPECT_THAT(Slow({{0, 4}}), IsEmpty()) << "of nine, four stand by already";
}

// The first one waits for those that become slow soon after it, and not for others.
TEST_F(SlowMembersTest, TheFirstWaitsForOthers) {
  for (const char* name : {"a0", "a1", "a2", "a3", "a4", "a5", "a6"}) Add(name, "a", 1.0 / 7);
  Begin();
  Train(100);
  std::map<std::string, double> factors = {{"a0", 4}};
  std::vector<std::string> slow;
  int steps = 0;
  for (; slow.empty() && steps < 100; ++steps) {
    if (steps == 3) factors["a1"] = 6;  // 0.3 s later; the wait is 0.4 s of 2 s
    if (steps == 10) factors["a2"] = 6;
    Train(1, factors);
    slow = Slow();
  }
  EXPECT_THAT(slow, ElementsAre("a1", "a0"));
  Train(10, factors);
  EXPECT_THAT(Slow(), ElementsAre("a1", "a2", "a0")) << "they were not left out meanwhile";
}

TEST_F(SlowMembersTest, OneThatIsFastAgainHoldsUpNobody) {
  for (const char* name : {"a0", "a1", "a2", "a3", "a4"}) Add(name, "a", 0.2);
  Begin();
  Train(100);
  Train(3, {{"a0", 9}});
  Train(10, {{"a0", 9}, {"a1", 9}});
  Train(20, {{"a0", 9}});
  EXPECT_THAT(Slow(), ElementsAre("a0"));
}

// Whoever is left out gives its samples to the others: without both, these would be slower than with one of the two.
TEST_F(SlowMembersTest, TheSecondStaysIfTheOthersWouldBeSlower) {
  Add("a0", "a", 0.5);
  Add("a1", "a", 0.25);
  for (const char* name : {"a2", "a3", "a4", "a5", "a6"}) Add(name, "a", 0.05);
  Begin();
  Train(100);
  Train(100, {{"a0", 4}, {"a1", 1.8}});
  EXPECT_THAT(Slow(), ElementsAre("a0"));
  Train(100, {{"a0", 4}, {"a1", 2.7}});
  EXPECT_THAT(Slow(), ElementsAre("a0", "a1"));
}

TEST_F(SlowMembersTest, ThoseOfSeveralStagesAreLeftOutTogether) {
  for (const char* name : {"a0", "a1", "a2"}) Add(name, "a", 1.0 / 3);
  for (const char* name : {"b0", "b1", "b2"}) Add(name, "b", 1.0 / 3, 1);
  Begin();
  Train(100);
  Train(100, {{"a1", 4}, {"b2", 6}});
  EXPECT_THAT(Slow(), ElementsAre("b2", "a1"));
}

TEST_F(SlowMembersTest, AnotherProcessOrOtherOperationsHaveNoHistory) {
  for (const char* name : {"a0", "a1", "a2"}) Add(name, "a", 1.0 / 3);
  Begin();
  Train(100);
  places_[0].instance = "new";
  places_[1].operations = "0-7;";
  Begin();
  Train(100, {{"a0", 4}, {"a1", 4}, {"a2", 4}});
  EXPECT_THAT(Slow(), IsEmpty()) << "only a2 was faster before, and the others are not usual at any other speed";
  Begin();
  Train(200);
  Train(100, {{"a0", 4}});
  EXPECT_THAT(Slow(), ElementsAre("a0"));
}

TEST_F(SlowMembersTest, WithoutADetectorNobodyIsSlow) {
  for (const char* name : {"a0", "a1", "a2"}) Add(name, "a", 1.0 / 3);
  members_.Begin({}, places_, [](const std::string&) { return true; });
  Train(100);
  Train(100, {{"a0", 9}});
  EXPECT_THAT(Slow(), IsEmpty());
  EXPECT_EQ(members_.Reference(0, "a", "a0"), 1);
}

// Whatever the trainers do, the few that become slow are found, and no others.
TEST_F(SlowMembersTest, RandomJobs) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    rng_ = base::Rng(seed);
    places_.clear();
    members_ = SlowMembers(base::seconds(2));
    const int units = 3 + static_cast<int>(rng_.Below(6));
    for (int i = 0; i < units; ++i) Add("m" + std::to_string(i), rng_.Below(2) == 0 ? "a" : "b", 1.0 / units);
    Begin();
    Train(80);
    std::map<std::string, double> factors;
    const double all = rng_.Below(2) == 0 ? 1 : rng_.Uniform(2, 4);  // the network, or a host that all share
    for (const TrainerPlace& place : places_) factors[place.member] = all;
    const std::string slow = places_[rng_.Below(static_cast<uint64_t>(units))].member;
    Train(60, factors);
    ASSERT_THAT(Slow(), IsEmpty()) << "seed " << seed;
    std::set<std::string> expected = {slow};
    std::map<std::string, int> pool_size, pool_slow;
    for (const TrainerPlace& place : places_) {
      ++pool_size[place.pool];
      pool_slow[place.pool] += place.member == slow ? 1 : 0;
    }
    // At least half of the stage trains on. Of the others in the pool of a slow one, at most half are slow.
    for (const TrainerPlace& place : places_) {
      if (2 * std::ssize(expected) + 2 > units || 2 * pool_slow[place.pool] + 1 > pool_size[place.pool]) continue;
      if (rng_.Below(2) == 0 && expected.insert(place.member).second) ++pool_slow[place.pool];
    }
    for (const std::string& name : expected) factors[name] *= rng_.Uniform(6, 9);
    Train(60, factors);
    ASSERT_THAT(Slow(), UnorderedElementsAreArray(expected)) << "seed " << seed;
  }
}

class StandbysTest : public testing::Test {
 protected:
  void LeaveOut(const std::string& instance = "i-1") {
    job::v1::StandbyRecord record;
    record.set_member("t");
    record.set_instance(instance);
    record.set_usual_seconds(0.01);
    standbys_.Add(record, time_);
    connected_["t"] = instance;
  }
  std::vector<DueProbe> Due() { return standbys_.Due(connected_, time_); }
  void Answer(double seconds, double slowness = 1, int64_t id = 0, const std::string& error = "") {
    job::v1::Probed answer;
    answer.set_id(id != 0 ? id : standbys_.Find("t")->probe);
    answer.set_seconds(seconds);
    answer.set_error(error);
    standbys_.OnProbed("t", answer, slowness, time_);
  }
  // Sends the next probe and answers it.
  void Probe(double seconds, double slowness = 1) {
    time_ += base::seconds(1);
    ASSERT_EQ(Due().size(), 1U);
    Answer(seconds, slowness);
  }
  size_t good() const { return standbys_.Find("t")->slowness.size(); }
  bool may_return() const { return standbys_.Find("t")->may_return; }

  Standbys standbys_{{.hold = base::seconds(5), .interval = base::seconds(1), .timeout = base::seconds(30)}};
  std::map<std::string, std::string> connected_;
  base::SteadyTime time_{base::seconds(100)};
};

TEST_F(StandbysTest, ReturnsWhenItsLastProbesAreGoodInTheMean) {
  LeaveOut();
  time_ += base::milliseconds(4999);
  EXPECT_TRUE(Due().empty()) << "held";
  Probe(0.05);
  for (const double seconds : {0.01, 0.014, 0.01}) {
    Probe(seconds);
    EXPECT_FALSE(may_return());
  }
  Probe(0.0155);
  EXPECT_TRUE(may_return()) << "0.0124 in the mean of four";
  time_ += base::seconds(10);
  EXPECT_TRUE(Due().empty());
}

TEST_F(StandbysTest, IsComparedWithThoseThatTrain) {
  LeaveOut();
  time_ += base::seconds(5);
  for (int i = 0; i < 4; ++i) Probe(0.023);
  EXPECT_FALSE(may_return());
  for (int i = 0; i < 4; ++i) Probe(0.023, 2);
  EXPECT_TRUE(may_return()) << "all are twice as slow as usual now";
}

TEST_F(StandbysTest, GetsOneProbeAtATimeAndOneInAnInterval) {
  LeaveOut();
  time_ += base::seconds(5);
  EXPECT_EQ(Due().size(), 1U);
  EXPECT_TRUE(Due().empty());
  time_ += base::seconds(100);
  EXPECT_TRUE(Due().empty()) << "a process that is stopped";
  Answer(0.01);
  EXPECT_EQ(good(), 0U) << "too late";
  EXPECT_TRUE(Due().empty());
  time_ += base::milliseconds(999);
  EXPECT_TRUE(Due().empty());
  time_ += base::milliseconds(1);
  EXPECT_EQ(Due().size(), 1U);
  Answer(0.01, 1, 99);
  EXPECT_EQ(good(), 0U) << "of another probe";
  Answer(0.01);
  EXPECT_EQ(good(), 1U);
}

TEST_F(StandbysTest, ALateProbeCountsAsSlow) {
  LeaveOut();
  time_ += base::seconds(5);
  Probe(0.01);
  Probe(0.01);
  time_ += base::seconds(1);
  EXPECT_EQ(Due().size(), 1U);
  time_ += base::seconds(31);
  EXPECT_TRUE(Due().empty());
  EXPECT_EQ(good(), 0U);
}

TEST_F(StandbysTest, AnAnswerThatIsLostWithItsSessionDoesNotEndProbes) {
  LeaveOut();
  time_ += base::seconds(5);
  EXPECT_EQ(Due().size(), 1U);
  standbys_.OnSession("t");
  EXPECT_EQ(Due().size(), 1U);
}

TEST_F(StandbysTest, WhoeverCannotMeasureDoesNotReturn) {
  LeaveOut();
  time_ += base::seconds(5);
  for (int i = 0; i < 5; ++i) {
    time_ += base::seconds(1);
    ASSERT_EQ(Due().size(), 1U);
    Answer(0, 1, 0, "no memory");
  }
  EXPECT_FALSE(may_return());
}

TEST_F(StandbysTest, TheHoldDoublesAndIsForgotten) {
  const auto hold = [&] { return standbys_.Find("t")->hold_until - time_; };
  LeaveOut();
  EXPECT_EQ(hold(), base::seconds(5));
  for (int doubled : {10, 20, 40, 80, 160, 320, 320}) {
    standbys_.Remove("t", time_);
    time_ += base::seconds(6);
    LeaveOut();
    EXPECT_EQ(hold(), base::seconds(doubled));
  }
  standbys_.Remove("t", time_);
  time_ += base::seconds(4 * 320);
  LeaveOut();
  EXPECT_EQ(hold(), base::seconds(5)) << "it has trained for long enough";
  standbys_.Remove("t", time_);
  LeaveOut();
  EXPECT_EQ(hold(), base::seconds(10));
  standbys_.Remove("t", time_);
  LeaveOut("i-2");
  EXPECT_EQ(hold(), base::seconds(5)) << "another process";
}

TEST_F(StandbysTest, AnotherProcessWithTheNameIsNotProbed) {
  LeaveOut();
  time_ += base::seconds(5);
  connected_["t"] = "i-2";
  EXPECT_TRUE(Due().empty());
  EXPECT_TRUE(standbys_.Has("t", "i-1"));
  EXPECT_FALSE(standbys_.Has("t", "i-2"));
}

TEST_F(StandbysTest, TheJournalRemembersThem) {
  LeaveOut();
  standbys_.Remove("t", time_);
  LeaveOut();
  job::v1::CoordinatorState journal;
  *journal.add_standbys() = standbys_.Find("t")->record;
  Standbys restored({.hold = base::seconds(5)});
  restored.Restore(journal, time_);
  ASSERT_TRUE(restored.Has("t", "i-1"));
  EXPECT_EQ(restored.Find("t")->hold_until - time_, base::seconds(10));
  EXPECT_EQ(restored.Find("t")->record.usual_seconds(), 0.01);
}

}  // namespace
}  // namespace medley::worker
