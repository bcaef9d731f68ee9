#include "tests/program/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::test_program {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;

const std::vector<NamedTest> kTests = {{"a_test", {"tests/x/a_test.cc", "tests/x/more_test.cc"}},
                                       {"b_test", {"tests/x/b_test.cc"}},
                                       {"c_test", {"tests/x/c_test.cc"}}};
const std::vector<Case> kCases = {
    {"A.One", "tests/x/a_test.cc"}, {"A.Two", "/root/tests/x/more_test.cc"}, {"All/B.Three/0", "tests/x/b_test.cc"}};

TEST(FilterOfTest, LeavesTheCasesOfTheTestsFiles) {
  EXPECT_THAT(FilterOf("a_test", kTests, kCases, "*"), IsOkAndHolds("*-All/B.Three/0"));
  EXPECT_THAT(FilterOf("/build/tests/b_test", kTests, kCases, "*"), IsOkAndHolds("*-A.One:A.Two"));
}

TEST(FilterOfTest, KeepsTheFilterThatWasGiven) {
  EXPECT_THAT(FilterOf("a_test", kTests, kCases, "A.*"), IsOkAndHolds("A.*-All/B.Three/0"));
  EXPECT_THAT(FilterOf("a_test", kTests, kCases, "A.*-A.One"), IsOkAndHolds("A.*-A.One:All/B.Three/0"));
}

TEST(FilterOfTest, AnotherNameMeansAllCases) {
  EXPECT_THAT(FilterOf("x_tests", kTests, kCases, "*"), IsOkAndHolds("*"));
}

// A test whose file was renamed would pass without a case.
TEST(FilterOfTest, ATestWithoutACaseIsAnError) {
  EXPECT_THAT(FilterOf("c_test", kTests, kCases, "*"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace medley::test_program
