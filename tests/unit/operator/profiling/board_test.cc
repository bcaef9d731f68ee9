#include "operator/profiling/board.h"

#include <gmock/gmock.h>

namespace medley::ops::profiling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(BoardTest, SetReturnsTrueOnlyForAChange) {
  Board board;
  const ProfileId id{"ml", "1234", "a"};
  const ProfileProgress running{ProfileProgress::Stage::kRunning, Reason::kMeasuring, "It runs.", "", {}, {}};
  EXPECT_FALSE(board.Set(id, std::nullopt));
  EXPECT_TRUE(board.Set(id, running));
  EXPECT_FALSE(board.Set(id, running));
  EXPECT_EQ(board.Find(id), running);
  EXPECT_TRUE(board.Set(id, std::nullopt));
  EXPECT_EQ(board.Find(id), std::nullopt);
}

TEST(BoardTest, KnowsTheProfilesOfAPool) {
  Board board;
  const ProfileProgress one{ProfileProgress::Stage::kRunning, Reason::kMeasuring, "One.", "", {}, {}};
  const ProfileProgress two{ProfileProgress::Stage::kFailed, Reason::kProfilerFailed, "Two.", "", {}, {}};
  board.Set({"ml", "1", "a"}, one);
  board.Set({"other", "1", "a"}, two);
  board.Set({"ml", "1", "b"}, two);
  EXPECT_THAT(board.OfPool("a"), ElementsAre(one, two));
  EXPECT_THAT(board.OfPool("c"), IsEmpty());
}

TEST(ProfileIdTest, KeysLeadBackToIds) {
  const ProfileId id{"ml", "12ab", "a100-spot"};
  EXPECT_EQ(ProfileIdOf(KeyOf(id)), id);
  for (const char* name : {"", ".", "12ab.", ".a", "12ab"}) EXPECT_EQ(ProfileIdOf({"ml", name}), std::nullopt) << name;
}

TEST(BoardTest, AProfileIsExpectedUntilItWasLookedAt) {
  Board board;
  board.Expect({{"ns", "h1", "a"}, {"ns", "h2", "a"}, {"ns", "h1", "b"}});
  EXPECT_TRUE(board.Set({"ns", "h1", "a"}, std::nullopt)) << "the pool may have something to report now";
  EXPECT_FALSE(board.Set({"ns", "h1", "a"}, std::nullopt));
  EXPECT_TRUE(board.Expects("a"));
  EXPECT_TRUE(board.Set({"ns", "h2", "a"}, ProfileProgress()));
  EXPECT_FALSE(board.Expects("a"));
  EXPECT_TRUE(board.Expects("b"));
}

}  // namespace
}  // namespace medley::ops::profiling
