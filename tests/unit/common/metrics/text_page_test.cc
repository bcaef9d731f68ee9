#include "common/metrics/text_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/metrics/process_metrics.h"

namespace medley::metrics {
namespace {

using testing::HasSubstr;
using Kind = TextPage::Kind;

TEST(TextPageTest, FamiliesWithHelpTypeLabelsAndValues) {
  TextPage page;
  page.Family("a_total", Kind::kCounter, "As");
  page.Sample({{"x", "1"}, {"y", "2"}}, 3);
  page.Sample({{"x", "2"}, {"y", "2"}}, 0.25);
  page.Family("empty", Kind::kGauge, "Nothing");
  page.Family("s_seconds", Kind::kSummary, "Sums");
  page.Sample({}, 1.5, "_sum");
  page.Sample({}, 2, "_count");
  EXPECT_EQ(page.Take(),
            "# HELP a_total As\n# TYPE a_total counter\na_total{x=\"1\",y=\"2\"} 3\n"
            "a_total{x=\"2\",y=\"2\"} 0.25\n"
            "# HELP s_seconds Sums\n# TYPE s_seconds summary\ns_seconds_sum 1.5\ns_seconds_count 2\n");
  EXPECT_EQ(page.Take(), "");
}

TEST(TextPageTest, EscapesLabelsAndWritesNonFiniteNumbers) {
  TextPage page;
  page.Family("g", Kind::kGauge, "a \\ \"b\"\nc");
  page.Sample({{"l", "q\"b\\n\nend"}}, std::nan(""));
  page.Sample({}, std::numeric_limits<double>::infinity());
  page.Sample({}, -std::numeric_limits<double>::infinity());
  page.Sample({}, 1e21);
  EXPECT_EQ(page.Take(),
            "# HELP g a \\\\ \"b\"\\nc\n# TYPE g gauge\ng{l=\"q\\\"b\\\\n\\nend\"} NaN\ng +Inf\ng "
            "-Inf\ng 1e+21\n");
}

double ValueOf(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

TEST(ProcessMetricsTest, DescribesThisProcess) {
  TextPage page;
  WriteProcessMetrics(page);
  const std::string text = page.Take();
  EXPECT_GT(ValueOf(text, "process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(ValueOf(text, "process_virtual_memory_bytes"), ValueOf(text, "process_resident_memory_bytes"));
  EXPECT_GE(ValueOf(text, "process_cpu_seconds_total"), 0);
  EXPECT_GE(ValueOf(text, "process_threads"), 1);
  EXPECT_GE(ValueOf(text, "process_open_fds"), 3);
  EXPECT_GE(ValueOf(text, "process_max_fds"), ValueOf(text, "process_open_fds"));
  EXPECT_GT(ValueOf(text, "process_start_time_seconds"), 1.5e9);  // after 2017
}

TEST(ProcessMetricsTest, BuildInfo) {
  TextPage page;
  WriteBuildInfo(page, "operator");
  EXPECT_THAT(page.Take(), HasSubstr("medley_build_info{component=\"operator\",version=\""));
}

}  // namespace
}  // namespace medley::metrics
