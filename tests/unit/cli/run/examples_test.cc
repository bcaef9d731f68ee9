#include "cli/run/examples.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "common/base/status.h"
#include "operator/api/crds.h"

namespace medley::cli {
namespace {

using testing::EndsWith;

// The patterns of both CRDs, in quotes as in the files and in messages.
std::set<std::string> Patterns() {
  std::set<std::string> patterns;
  for (const auto& [name, text] : ops::BundledCrds()) {
    constexpr std::string_view kField = "pattern: '";
    for (size_t at = text.find(kField); at != std::string_view::npos; at = text.find(kField, at + 1)) {
      const size_t quote = at + kField.size() - 1;
      patterns.insert(std::string(text.substr(quote, text.find('\'', quote + 1) - quote + 1)));
    }
  }
  return patterns;
}

TEST(ExamplesTest, EveryPatternOfTheCrdsHasAnExample) {
  EXPECT_GE(Patterns().size(), 5u);
  for (const std::string& pattern : Patterns()) {
    const absl::Status error = base::InvalidArgument("spec.x in body should match {}", pattern);
    EXPECT_NE(WithExample(error), error) << pattern;
  }
}

TEST(ExamplesTest, TheExampleFollowsThePattern) {
  const absl::Status error = WithExample(base::InvalidArgument(
      "spec.objective.deadline: Invalid value: \"two hours\": spec.objective.deadline in body should match '{}'",
      R"(^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$)"));
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::Message(error), EndsWith("(ms|s|m|h))+$', as in 90s, 5m or 1h30m"));
}

TEST(ExamplesTest, OtherErrorsStay) {
  const absl::Status error = base::NotFound("the pool 'a' does not exist");
  EXPECT_EQ(WithExample(error), error);
}

}  // namespace
}  // namespace medley::cli
