// Runs the cases of one test of a program that several tests share: of the test by whose name it was started.
#include <gtest/gtest.h>

#include <cstdio>

#include "common/base/status.h"
#include "tests/program/choose.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::vector<medley::test_program::Case> cases;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    for (int i = 0; i < all.GetTestSuite(suite)->total_test_count(); ++i) {
      const testing::TestInfo& info = *all.GetTestSuite(suite)->GetTestInfo(i);
      cases.push_back({std::string(info.test_suite_name()) + "." + info.name(), info.file()});
    }
  }
  const auto filter = medley::test_program::FilterOf(argv[0], medley::test_program::TestsOfThisProgram(), cases,
                                                     GTEST_FLAG_GET(filter));
  if (!filter.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[0], medley::base::ToString(filter.status()).c_str());
    return 1;
  }
  GTEST_FLAG_SET(filter, *filter);
  return RUN_ALL_TESTS();
}
