#include "operator/capacity/waiting_line.h"

#include <gmock/gmock.h>

#include "common/base/testing/fake_clock.h"

namespace medley::ops {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WaitingLineTest : public testing::Test {
 protected:
  WaitingLine::Job Job(const char* name, int64_t priority = 0, const char* created = "2026-01-01T00:00:00Z") {
    return {{"ns", name}, priority, created};
  }
  static kube::Key Key(const char* name) { return {"ns", name}; }
  std::vector<std::string> Woken() { return std::exchange(woken_, {}); }

  base::FakeClock clock_;
  std::vector<std::string> woken_;
  std::vector<base::nanoseconds> delays_;
  WaitingLine line_{clock_, [this](const kube::Key& job, base::nanoseconds delay) {
                      woken_.push_back(job.name);
                      delays_.push_back(delay);
                    }};
};

TEST_F(WaitingLineTest, ThePriorityCountsThenTheAgeThenTheName) {
  for (const auto& job : {Job("young", 5, "2026-01-02T00:00:00Z"), Job("b", 5), Job("a", 5), Job("urgent", 9),
                          Job("old", 0, "2025-01-01T00:00:00Z")}) {
    line_.Take(job);
    line_.Wait(job.key, line_.turn());
  }
  std::vector<std::string> order;
  line_.UnitsFreed();
  for (std::vector<std::string> next = Woken(); !next.empty(); next = Woken()) {
    ASSERT_EQ(next.size(), 1u);
    order.push_back(next[0]);
    line_.Leave(Key(next[0].c_str()));
  }
  EXPECT_THAT(order, ElementsAre("urgent", "a", "b", "young", "old"));
}

TEST_F(WaitingLineTest, AJobBehindWaitsUntilThoseAheadHaveTried) {
  const int64_t turn = line_.turn();
  EXPECT_EQ(line_.Take(Job("high", 1)), std::nullopt);
  EXPECT_EQ(line_.Take(Job("low")), std::nullopt) << "as far as is known there are units for both";
  line_.Wait(Key("high"), turn);
  line_.Wait(Key("low"), turn);
  EXPECT_THAT(Woken(), IsEmpty());
  line_.UnitsFreed();
  EXPECT_THAT(Woken(), ElementsAre("high"));
  EXPECT_EQ(line_.Take(Job("low")), Key("high"));
  EXPECT_EQ(line_.Take(Job("new")), Key("high"));
  line_.Wait(Key("new"), line_.turn());  // its pass ends
  EXPECT_EQ(line_.Take(Job("higher", 2)), std::nullopt);
  line_.Wait(Key("high"), line_.turn());
  EXPECT_THAT(Woken(), ElementsAre("low"));
  EXPECT_EQ(line_.Take(Job("low")), std::nullopt) << "what is free is given to those behind";
  line_.Wait(Key("low"), line_.turn());
  EXPECT_THAT(Woken(), ElementsAre("new"));
}

TEST_F(WaitingLineTest, UnitsThatAreFreedWhileAJobIsPlannedWakeItAgain) {
  const int64_t turn = line_.turn();
  line_.Take(Job("a"));
  line_.UnitsFreed();
  line_.Wait(Key("a"), turn);  // it may have counted before
  EXPECT_THAT(Woken(), ElementsAre("a"));
  line_.Wait(Key("a"), line_.turn());
  EXPECT_THAT(Woken(), IsEmpty());
}

TEST_F(WaitingLineTest, AJobThatCountsBeforeItsTurnBeginsIsWokenAgain) {
  line_.Take(Job("a"));
  line_.Wait(Key("a"), line_.turn());
  for (int i = 0; i < 2; ++i) {  // the second turn begins in 100 ms
    line_.UnitsFreed();
    line_.Wait(Key("a"), line_.turn() - 1);
  }
  Woken();
  const int64_t turn = line_.turn();
  EXPECT_EQ(line_.Take(Job("a")), std::nullopt);  // for another reason
  line_.UnitsFreed();
  line_.Wait(Key("a"), turn);
  EXPECT_THAT(Woken(), ElementsAre("a"));
}

TEST_F(WaitingLineTest, WhatIsFreedDuringATurnIsForTheFirst) {
  for (const char* name : {"a", "b"}) {
    line_.Take(Job(name));
    line_.Wait(Key(name), line_.turn());
  }
  clock_.Advance(base::seconds(60));
  line_.UnitsFreed();
  line_.Wait(Key("a"), line_.turn());
  EXPECT_THAT(Woken(), ElementsAre("a", "b"));
  const int64_t turn = line_.turn();
  EXPECT_EQ(line_.Take(Job("b")), std::nullopt);
  line_.UnitsFreed();
  EXPECT_THAT(Woken(), ElementsAre("a"));
  EXPECT_EQ(line_.Ahead(Key("b"), turn), Key("a"));
  EXPECT_EQ(line_.Ahead(Key("b"), line_.turn()), std::nullopt);
  EXPECT_EQ(line_.Take(Job("b")), Key("a"));
}

TEST_F(WaitingLineTest, WhatIsFreedAllTheTimeDoesNotKeepTheLastFromTheirTurn) {
  clock_.Advance(WaitingLine::kPatience);
  for (const char* name : {"a", "b", "c"}) {
    line_.Take(Job(name));
    line_.Wait(Key(name), line_.turn());
  }
  line_.UnitsFreed();
  std::map<std::string, int> tries;
  for (int i = 0; i < 600; ++i) {
    const std::vector<std::string> next = Woken();
    ASSERT_FALSE(next.empty());
    ++tries[next.back()];
    line_.UnitsFreed();
    line_.Wait(Key(next.back().c_str()), line_.turn());
    clock_.Advance(base::milliseconds(100));
  }
  EXPECT_GE(tries["c"], 5);  // in a minute
  EXPECT_GT(tries["a"], tries["b"]);
}

TEST_F(WaitingLineTest, TheLineGoesOnWithoutAJobWhosePlanTakesLong) {
  line_.Join(Job("slow", 1));
  EXPECT_THAT(Woken(), ElementsAre("slow"));
  EXPECT_EQ(line_.Take(Job("low")), Key("slow"));
  clock_.Advance(WaitingLine::kPatience);
  EXPECT_EQ(line_.Take(Job("low")), std::nullopt);
  EXPECT_THAT(Woken(), ElementsAre("low"));
}

TEST_F(WaitingLineTest, ManyChangesAtOnceCauseFewTurns) {
  clock_.Advance(base::seconds(1));
  line_.Take(Job("a"));
  line_.Wait(Key("a"), line_.turn());
  for (int i = 0; i < 3; ++i) {
    line_.UnitsFreed();
    line_.UnitsFreed();
    line_.Wait(Key("a"), line_.turn());
  }
  const base::nanoseconds turn = WaitingLine::kShortestTurn;
  EXPECT_THAT(delays_, ElementsAre(base::nanoseconds(0), turn, turn, turn));
}

TEST_F(WaitingLineTest, AnEmptyLineWakesNobody) {
  line_.UnitsFreed();
  line_.Leave(Key("nobody"));
  line_.Wait(Key("nobody"), 7);
  line_.Take(Job("a"));
  line_.Leave(Key("a"));
  line_.UnitsFreed();
  EXPECT_THAT(Woken(), IsEmpty());
}

}  // namespace
}  // namespace medley::ops
