#include "common/document/difference.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace medley::document {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(DifferenceTest, NamesEachFieldWithBothValues) {
  const json before = {{"batch", 512}, {"optimizer", {{"name", "adam"}, {"rate", 0.1}}}, {"hidden", {64, 32}}};
  const json after = {{"batch", 256}, {"optimizer", {{"name", "adam"}}}, {"hidden", {64, 16}}, {"seed", 3}};
  EXPECT_THAT(
      Differences(before, after, "spec"),
      ElementsAre(Difference{"spec.batch", "512", "256"}, Difference{"spec.hidden[1]", "32", "16"},
                  Difference{"spec.optimizer.rate", "0.1", "not set"}, Difference{"spec.seed", "not set", "3"}));
  EXPECT_THAT(Differences(before, before, "spec"), IsEmpty());
  EXPECT_THAT(Differences({{"a", 1}}, {{"a", 1.0}}, "x"), IsEmpty());
}

TEST(DifferenceTest, ListsOfOtherLengthsAndOtherKindsAreOneDifference) {
  EXPECT_THAT(Differences({{"h", {1, 2}}}, {{"h", {1}}}, "m"), ElementsAre(Difference{"m.h", "[1,2]", "[1]"}));
  EXPECT_THAT(Differences({{"h", {{"a", 1}}}}, {{"h", "x"}}, "m"),
              ElementsAre(Difference{"m.h", "{\"a\":1}", "\"x\""}));
  EXPECT_THAT(Differences(json(), {{"a", {{"b", 1}}}}, "m"), ElementsAre(Difference{"m.a.b", "not set", "1"}));
  EXPECT_THAT(Differences({{"a", json::object()}}, json::object(), "m"),
              ElementsAre(Difference{"m.a", "{}", "not set"}));
  EXPECT_THAT(Differences({{"a", nullptr}}, json::object(), "m"), IsEmpty());
}

TEST(DifferenceTest, LongValuesAreCutAtACharacter) {
  const std::string umlauts = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "\xc3\xa4";
    return text;
  }();
  const auto found = Differences({{"a", umlauts}}, {{"a", "b"}}, "m");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_LE(found[0].before.size(), kLongestValue);
  EXPECT_TRUE(found[0].before.ends_with("\xa4..."));
}

TEST(DifferenceTest, ASentenceIsBounded) {
  EXPECT_EQ(Sentence({{"spec.a", "1", "2"}, {"spec.b", "not set", "3"}}, "in the run", "in the file"),
            "spec.a is 1 in the run and 2 in the file; spec.b is not set in the run and 3 in the file");
  EXPECT_EQ(Sentence({{"a", "1", "2"}, {"b", "1", "2"}, {"c", "1", "2"}}, "there", "here", 1),
            "a is 1 there and 2 here; 2 more fields differ");
}

}  // namespace
}  // namespace medley::document
