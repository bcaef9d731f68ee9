// The fuzz target of termination messages. What is read is within its bounds, and is read again from what is written.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/job_result/job_result.h"

namespace medley::job_result {
namespace {

void FuzzResult(std::string_view text) {
  const absl::StatusOr<JobResult> result = Parse(text, "uid");
  if (!result.ok()) return;
  MEDLEY_CHECK(result->job_uid == "uid", "the result of another job");
  MEDLEY_CHECK(result->step >= 0 && result->samples >= 0 && result->epoch >= 0, "a negative count");
  MEDLEY_CHECK(result->metrics.size() <= kMostMetrics, "too many metrics");
  MEDLEY_CHECK(!result->loss || std::isfinite(*result->loss), "a loss that is not finite");
  MEDLEY_CHECK(base::IsUtf8(result->reason) && result->reason.size() <= kMostReasonBytes, "a bad reason");
  for (const auto& [name, value] : result->metrics) MEDLEY_CHECK(std::isfinite(value), "a metric that is not finite");
  const std::string written = ToText(*result);
  MEDLEY_CHECK(written.size() <= kMostBytes, "the text is too long");
  const absl::StatusOr<JobResult> again = Parse(written, "uid");
  MEDLEY_CHECK(again.ok() && again->phase == result->phase && again->step == result->step,
               "the text was not read back");
}

}  // namespace
}  // namespace medley::job_result

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::job_result::FuzzResult({reinterpret_cast<const char*>(data), size});
  return 0;
}
