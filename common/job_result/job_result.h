// The result of a job as text, short enough for the termination message of a container: Kubernetes keeps 4,096 bytes.
//
// The coordinator writes it at its end, and the operator reads it from the pod's status when nobody has heard the last
// observation. Values and pure functions; thread-safe.
//
//   {"job":"UID","phase":"Complete","step":40,"samples":10240,"samplesTotal":10240,"metrics":{"auc":0.89},...}
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace medley::job_result {

inline constexpr size_t kMostBytes = 4096;
inline constexpr size_t kMostReasonBytes = 1024;
inline constexpr size_t kMostMetrics = 32;
inline constexpr size_t kMostNameBytes = 64;  // of a metric

enum class Phase { kComplete, kFailed, kSuspended };
std::string_view ToString(Phase phase);  // "Complete"

struct Best {
  int64_t step = 0;
  int64_t epochs = 0;
  std::string metric;  // as in JobResult::metrics
  double value = 0;
  bool validation = false;  // measured with the validation data; false: with the test data
  bool operator==(const Best&) const = default;
};

struct Exported {
  int64_t step = 0;
  int64_t epochs = 0;
  bool best = false;  // it is the best model; false: the last one
  bool operator==(const Exported&) const = default;
};

struct JobResult {
  std::string job_uid;
  Phase phase = Phase::kComplete;
  int64_t step = 0;  // committed, as samples
  int64_t samples = 0;
  int64_t samples_total = 0;  // 0: not known
  int64_t epoch = 0;          // of the last step, from 1; 0: not known
  int64_t epochs = 0;
  int64_t bad_rows = 0;
  int64_t last_checkpoint_step = 0;
  std::optional<double> loss;  // of the last steps; absent: not finite
  bool stopped_early = false;
  std::map<std::string, double> metrics;  // finite
  std::optional<Best> best;
  std::optional<Exported> exported;
  std::string reason;  // why the job failed or stopped early: a sentence
  bool operator==(const JobResult&) const = default;
};

// At most kMostBytes of JSON in one line. Numbers that are not finite, metrics beyond kMostMetrics and names beyond
// kMostNameBytes are left out, and the reason is cut to kMostReasonBytes. What does not fit then is dropped in this
// order: the reason down to 128 bytes, metrics from the last name on, the best model, the finished model, the reason.
std::string ToText(const JobResult& result);

// Errors, as short clauses: InvalidArgument for what is not such a text: empty, too long, not UTF-8, not JSON, cut off,
// with a number that is negative, not finite or too large, with more metrics than there may be, with more samples than
// the job has; FailedPrecondition for the result of another job than `job_uid`. Unknown fields are ignored: a newer
// coordinator may have written them.
absl::StatusOr<JobResult> Parse(std::string_view text, std::string_view job_uid);

}  // namespace medley::job_result
