// tests/golden/plan/*.yaml: {request: PlanRequest, expect: subset of the PlanResponse's JSON}.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/document/parse.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/value_text.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"

namespace medley::sched {
namespace {

using nlohmann::json;

// Checks that `actual` has every field of `expected`; numbers must agree to 1e-6 relative.
void ExpectSubset(const json& expected, const json& actual, const std::string& path) {
  if (expected.is_object()) {
    ASSERT_TRUE(actual.is_object()) << path;
    for (const auto& [key, value] : expected.items()) {
      ASSERT_TRUE(actual.contains(key)) << path << "." << key;
      ExpectSubset(value, actual[key], path + "." + key);
    }
  } else if (expected.is_array()) {
    ASSERT_EQ(expected.size(), actual.size()) << path;
    for (size_t i = 0; i < expected.size(); ++i) ExpectSubset(expected[i], actual[i], fmt::format("{}[{}]", path, i));
  } else if (expected.is_number()) {
    ASSERT_TRUE(actual.is_number()) << path;
    EXPECT_NEAR(actual.get<double>(), expected.get<double>(), 1e-6 * std::abs(expected.get<double>())) << path;
  } else {
    EXPECT_EQ(expected, actual) << path;
  }
}

void CheckGolden(const std::filesystem::path& path) {
  SCOPED_TRACE(path.filename().string());
  const auto text = base::ReadFile(path);
  ASSERT_THAT(text, base::IsOk());
  const auto tree = document::Parse(*text);
  ASSERT_THAT(tree, base::IsOk());
  const json& golden = *tree;
  const auto request = model::ParsePlanRequest(golden["request"].dump());
  ASSERT_THAT(request, base::IsOk());
  base::SystemClock clock;
  const auto result = MakePlan(*request, {}, BuiltinPlanners(), clock, {});
  ASSERT_THAT(result, base::IsOk());
  ExpectSubset(golden["expect"], json::parse(model::PlanResultJson(*result)), "response");
}

TEST(GoldenTest, PlansAreAsRecorded) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source) / "tests/golden/plan")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    CheckGolden(entry.path());
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace medley::sched
