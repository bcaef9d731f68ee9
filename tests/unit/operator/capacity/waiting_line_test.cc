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
  const WaitingLine::Turn first = line_.Take(Job("high", 1));
  EXPECT_FALSE(first.ahead.has_value());
  EXPECT_FALSE(line_.Take(Job("low")).ahead.has_value()) << "as far as is known there are units for both";
  line_.Wait(Key("high"), first.number);
  line_.Wait(Key("low"), first.number);
  Woken();
  line_.UnitsFreed();
  EXPECT_THAT(Woken(), ElementsAre("high"));
  EXPECT_EQ(line_.Take(Job("low")).ahead, Key("high"));
  EXPECT_EQ(line_.Take(Job("new")).ahead, Key("high"));
  line_.Wait(Key("high"), line_.Take(Job("high", 1)).number);
  EXPECT_THAT(Woken(), ElementsAre("low"));
  EXPECT_FALSE(line_.Take(Job("low")).ahead.has_value()) << "what is free is given to those behind";
  EXPECT_FALSE(line_.Take(Job("higher", 2)).ahead.has_value());
}

TEST_F(WaitingLineTest, UnitsThatAreFreedWhileAJobIsPlannedWakeItAgain) {
  const WaitingLine::Turn turn = line_.Take(Job("a"));
  line_.UnitsFreed();
  EXPECT_THAT(Woken(), ElementsAre("a"));
  line_.Wait(Key("a"), turn.number);  // it has counted before
  EXPECT_THAT(Woken(), ElementsAre("a"));
  line_.Wait(Key("a"), line_.Take(Job("a")).number);
  EXPECT_THAT(Woken(), IsEmpty());
}

TEST_F(WaitingLineTest, ASlowPlanDelaysOthersForAWhileOnly) {
  line_.Join(Job("slow", 1));
  EXPECT_TRUE(line_.Take(Job("low")).ahead.has_value());
  clock_.Advance(WaitingLine::kPatience);
  EXPECT_FALSE(line_.Take(Job("low")).ahead.has_value());
}

TEST_F(WaitingLineTest, ManyChangesAtOnceCauseFewTurns) {
  line_.Take(Job("a"));
  clock_.Advance(base::seconds(1));
  for (int i = 0; i < 3; ++i) line_.UnitsFreed();
  EXPECT_THAT(delays_, ElementsAre(base::nanoseconds(0), WaitingLine::kShortestTurn, WaitingLine::kShortestTurn));
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
