#include "worker/agent/progress_port.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

using base::StatusIs;

TEST(ProgressPortTest, ReadsReports) {
  EXPECT_EQ(*ReadReport(R"({"step": 12, "loss": 0.5, "samples": 3})"), (model::StepReport{12, 0.5}));
  EXPECT_EQ(*ReadReport(R"({"step": 1, "loss": null})"), (model::StepReport{1, std::nullopt}));
  for (const char* bad : {"", "[]", "{}", "7", R"({"step": 0})", R"({"step": 1.5})", R"({"step": "1"})",
                          R"({"step": 1, "loss": "x"})", R"({"step": 1e300})", "{\"step\": 1"}) {
    EXPECT_THAT(ReadReport(bad).status(), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

}  // namespace
}  // namespace medley::worker
