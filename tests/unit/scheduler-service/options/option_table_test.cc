#include "scheduler-service/options/option_table.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

enum class Colour { kRed, kGreen };

struct Paint {
  int coats = 2;
  double gloss = 0;
  Colour colour = Colour::kRed;
};

const OptionTable<Paint>& Table() {
  static const auto table =
      OptionTable<Paint>()
          .Integer("coats", &Paint::coats, 1, 9, "how often")
          .Number("glossShare", &Paint::gloss, 0.25, 1, "how much", "1 / coats")
          .Choice<Colour>("colour", &Paint::colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}}, "which");
  return table;
}

TEST(OptionTableTest, FillsInWhatIsGivenAndLeavesTheRest) {
  const auto none = Table().Read("brush", {});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(none->coats, 2);
  EXPECT_EQ(none->gloss, 0);
  EXPECT_EQ(none->colour, Colour::kRed);
  const auto all = Table().Read("brush", {{"coats", 9.}, {"glossShare", 0.25}, {"colour", "green"}});
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->coats, 9);
  EXPECT_EQ(all->gloss, 0.25);
  EXPECT_EQ(all->colour, Colour::kGreen);
}

TEST(OptionTableTest, AnUnknownNameIsAnErrorWithTheClosestAndAll) {
  const std::string all =
      "Its options: coats (integer, 1 to 9, default 2), glossShare (number, 0.25 to 1, default 1 / coats), "
      "colour (red | green, default red)";
  EXPECT_THAT(
      Table().Read("brush", {{"colors", "red"}}),
      StatusIs(kInvalid, "planner.options.colors: planner brush has no such option; did you mean `colour`? " + all));
  EXPECT_THAT(Table().Read("brush", {{"x", 1.}}),
              StatusIs(kInvalid, "planner.options.x: planner brush has no such option. " + all));
  EXPECT_THAT(CheckOptions("roll", {}, {{"x", 1.}}),
              StatusIs(kInvalid, "planner.options.x: planner roll has no options"));
}

TEST(OptionTableTest, AnotherKindOrRangeIsNamed) {
  const struct {
    const char* name;
    model::OptionValue value;
    const char* error;
  } kCases[] = {
      {"coats", 0., "planner.options.coats: must be an integer in [1, 9], is 0"},
      {"coats", 10., "planner.options.coats: must be an integer in [1, 9], is 10"},
      {"coats", 2.5, "planner.options.coats: must be an integer in [1, 9], is 2.5"},
      {"coats", "two", "planner.options.coats: must be an integer in [1, 9], is 'two'"},
      {"coats", true, "planner.options.coats: must be an integer in [1, 9], is true"},
      {"coats", std::nan(""), "planner.options.coats: must be an integer in [1, 9], is nan"},
      {"glossShare", 1.01, "planner.options.glossShare: must be a number in [0.25, 1], is 1.01"},
      {"glossShare", "1", "planner.options.glossShare: must be a number in [0.25, 1], is '1'"},
      {"colour", "gren", "planner.options.colour: must be one of red, green, is 'gren'; did you mean `green`?"},
      {"colour", 1., "planner.options.colour: must be one of red, green, is 1"},
  };
  for (const auto& each : kCases) {
    EXPECT_THAT(Table().Read("brush", {{each.name, each.value}}), StatusIs(kInvalid, each.error));
  }
}

}  // namespace
}  // namespace medley::sched
