// Compares a drawing with tests/golden/cli/pareto.svg. MEDLEY_GOLDEN_UPDATE=1 rewrites the file; review the change.
#include "cli/pareto_svg.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

std::string GoldenPath() {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/golden/cli/pareto.svg";
}

TEST(ParetoSvgTest, MatchesTheGoldenFile) {
  const std::string svg = ParetoSvg("a <model> & its front", {{21000, 1.5, "0-3 cpu x12", true},
                                                              {30500, 1.625, "0-3 v100 x2", false},
                                                              {64000, 2.75, "0 cpu x4, 1-3 \"v100\" x8", false}});
  if (std::getenv("MEDLEY_GOLDEN_UPDATE") != nullptr) {
    ASSERT_THAT(base::WriteFileAtomic(GoldenPath(), svg), base::IsOk());
  }
  const auto golden = base::ReadFile(GoldenPath());
  ASSERT_THAT(golden, base::IsOk());
  EXPECT_EQ(svg, *golden);
}

TEST(ParetoSvgTest, TicksAreRoundAndCoverTheValues) {
  EXPECT_EQ(Ticks(21000, 64000, 7), (std::vector<double>{20000, 30000, 40000, 50000, 60000, 70000}));
  EXPECT_EQ(Ticks(0.13, 0.21, 4).size(), 6U);  // 0.12, 0.14 ... 0.22
  EXPECT_NEAR(Ticks(0.13, 0.21, 4)[1], 0.14, 1e-12);
  for (const double value : {0.0, 5.0, 1e-6, 1e9}) {
    const std::vector<double> around = Ticks(value, value, 6);
    ASSERT_GE(around.size(), 3U);
    EXPECT_LT(around.front(), value);
    EXPECT_GT(around.back(), value);
  }
}

TEST(ParetoSvgTest, NothingToDrawIsStillADrawing) {
  EXPECT_NE(ParetoSvg("none", {}).find("</svg>"), std::string::npos);
  EXPECT_NE(ParetoSvg("one", {{100, 1, "it", true}}).find("<circle"), std::string::npos);
}

}  // namespace
}  // namespace medley::cli
