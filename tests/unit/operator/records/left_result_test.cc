#include "operator/records/left_result.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using job_result::JobResult;
using job_result::Phase;
using kube::Json;
using testing::AllOf;
using testing::HasSubstr;

kube::Object PodWith(const std::string& message, int exit_code, const char* state = "state") {
  const Json worker = {{"name", "worker"}, {state, {{"terminated", {{"exitCode", exit_code}, {"message", message}}}}}};
  const Json sidecar = {{"name", "sidecar"}};
  Json pod = Json::object();
  pod["status"]["containerStatuses"] = Json::array({sidecar, worker});
  return kube::Object(pod);
}

JobResult Complete() {
  return {.job_uid = "uid", .step = 40, .samples = 1000, .samples_total = 1000, .metrics = {{"auc", 0.9}}};
}

ObservedStatus Observed(int64_t samples, int64_t total = 1000) {
  ObservedStatus observed;
  observed.samples = samples;
  observed.samples_total = total;
  return observed;
}

TEST(LeftResultTest, ResultIsReadFromTheWorkersStatus) {
  EXPECT_THAT(LeftResult(PodWith(ToText(Complete()), 0), "uid", Observed(900)), base::IsOkAndHolds(Complete()));
  EXPECT_THAT(LeftResult(PodWith(ToText(Complete()), 0), "uid", std::nullopt), IsOk());
  EXPECT_THAT(LeftResult(PodWith(ToText(Complete()), 0, "lastState"), "uid", std::nullopt, "lastState"), IsOk());
}

TEST(LeftResultTest, PodWithoutMessageIsNamed) {
  for (const kube::Object& pod : {kube::Object(), PodWith("", 0), PodWith(ToText(Complete()), 0, "lastState")}) {
    EXPECT_THAT(LeftResult(pod, "uid", std::nullopt),
                StatusIs(absl::StatusCode::kNotFound, "its pod has no termination message"));
  }
}

TEST(LeftResultTest, ExitCodeDecides) {
  JobResult result = Complete();
  for (const auto& [phase, code] :
       {std::pair{Phase::kComplete, 1}, {Phase::kComplete, 137}, {Phase::kSuspended, 2}, {Phase::kFailed, 0}}) {
    result.phase = phase;
    EXPECT_THAT(LeftResult(PodWith(ToText(result), code), "uid", std::nullopt),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("and the exit code is")));
  }
  for (const auto& [phase, code] :
       {std::pair{Phase::kComplete, 0}, {Phase::kSuspended, 0}, {Phase::kFailed, 1}, {Phase::kFailed, 2}}) {
    result.phase = phase;
    EXPECT_THAT(LeftResult(PodWith(ToText(result), code), "uid", std::nullopt), IsOk());
  }
}

TEST(LeftResultTest, WhatWasObservedIsNotTakenBack) {
  const kube::Object pod = PodWith(ToText(Complete()), 0);
  EXPECT_THAT(LeftResult(pod, "uid", Observed(1001)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("1000 samples, and 1001 were observed")));
  EXPECT_THAT(LeftResult(pod, "uid", Observed(500, 2000)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("1000 samples, and 2000 were observed")));
  JobResult failed = Complete();  // it had returned to a checkpoint
  failed.phase = Phase::kFailed;
  failed.samples = 100;
  EXPECT_THAT(LeftResult(PodWith(ToText(failed), 1), "uid", Observed(900)), IsOk());
}

TEST(LeftResultTest, HalfOfTheSamplesIsNotComplete) {
  JobResult half = Complete();
  half.samples = 500;
  EXPECT_THAT(LeftResult(PodWith(ToText(half), 0), "uid", std::nullopt),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("500 of 1000 samples")));
  half.stopped_early = true;
  EXPECT_THAT(LeftResult(PodWith(ToText(half), 0), "uid", std::nullopt), IsOk());
}

TEST(LeftResultTest, MessageOfAnybodyIsNamedAndBounded) {
  for (const std::string& message : {std::string(4096, '\xff'), std::string(4096, '{'), std::string("\x1b[2J"),
                                     ToText(Complete()).substr(1), std::string(100'000, 'x')}) {
    const auto left = LeftResult(PodWith(message, 0), "uid", std::nullopt);
    ASSERT_THAT(left, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("its pod's termination message is not used: ")));
    EXPECT_LT(left.status().message().size(), 1000);
    EXPECT_EQ(left.status().message().find('\x1b'), std::string::npos);
  }
  EXPECT_THAT(LeftResult(PodWith(ToText(Complete()), 0), "other", std::nullopt),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another job")));
}

}  // namespace
}  // namespace medley::ops
