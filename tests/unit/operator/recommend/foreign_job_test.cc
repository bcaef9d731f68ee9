#include "operator/recommend/foreign_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/recommend/jobs.h"

namespace medley::ops::recommend {
namespace {

using base::StatusIs;
using kube::Json;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

kube::Object Merged(kube::Object object, const Json& patch) {
  kube::MergePatch(object.mutable_json(), patch);
  return object;
}

TEST(ForeignJobTest, ReadsAJob) {
  auto job = ReadForeignJob(ForeignKind::kJob, SuspendedJob(3)).value();
  EXPECT_TRUE(job.wanted && job.suspended && job.sizable && !job.finished && !job.queued);
  EXPECT_EQ(job.nodes, 3);
  EXPECT_EQ(job.key.ToString(), "team/train");
  const auto read = [](const Json& patch) {
    return ReadForeignJob(ForeignKind::kJob, Merged(SuspendedJob(3), patch)).value();
  };
  EXPECT_FALSE(read({{"spec", {{"completions", 4}}}}).sizable);
  EXPECT_FALSE(read({{"spec", {{"completionMode", "NonIndexed"}}}}).sizable);
  EXPECT_EQ(read({{"spec", {{"parallelism", nullptr}}}}).nodes, 1);
  EXPECT_FALSE(read({{"spec", {{"suspend", false}}}}).suspended);
  EXPECT_TRUE(read({{"metadata", {{"labels", {{"kueue.x-k8s.io/queue-name", "q"}}}}}}).queued);
  EXPECT_FALSE(read({{"metadata", {{"labels", {{kRecommendLabel, "yes"}}}}}}).wanted);
  EXPECT_FALSE(read({{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}}).wanted);
  const auto with_condition = [&](const char* type, const char* status) {
    return read({{"status", {{"conditions", {{{"type", type}, {"status", status}}}}}}}).finished;
  };
  EXPECT_TRUE(with_condition("Complete", "True"));
  EXPECT_TRUE(with_condition("Failed", "True"));
  EXPECT_FALSE(with_condition("Complete", "False"));
  EXPECT_FALSE(with_condition("Suspended", "True"));
}

TEST(ForeignJobTest, ReadsTheNamedReplicatedJobOfAJobSet) {
  kube::Object set = SuspendedJobSet();
  EXPECT_THAT(ReadForeignJob(ForeignKind::kJobSet, set),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several replicated jobs; the replicated jobs are "
                                                                     "driver, workers")));
  set.SetAnnotation(kTargetAnnotation, "nodes");
  EXPECT_THAT(ReadForeignJob(ForeignKind::kJobSet, set),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no replicated job has the name 'nodes'")));
  set.SetAnnotation(kTargetAnnotation, "workers");
  const auto job = ReadForeignJob(ForeignKind::kJobSet, set).value();
  EXPECT_EQ(job.nodes, 8);
  EXPECT_FALSE(job.sizable);
  EXPECT_EQ(job.target_index, 1);
  EXPECT_THAT(job.node_selector, UnorderedElementsAre(Pair("disk", "ssd")));
  const Json huge = {{"replicas", 2'000'000'000}, {"name", "a"}, {"template", {{"spec", {{"parallelism", 3}}}}}};
  EXPECT_THAT(ReadForeignJob(ForeignKind::kJobSet, Merged(set, {{"spec", {{"replicatedJobs", {huge}}}},
                                                                {"metadata", {{"annotations", nullptr}}}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many pods")));
}

TEST(ForeignJobTest, ReadsATrainJobWithItsUsersOverrides) {
  auto job = ReadForeignJob(ForeignKind::kTrainJob, SuspendedTrainJob()).value();
  EXPECT_EQ(job.nodes, std::nullopt);
  EXPECT_TRUE(job.sizable);
  EXPECT_EQ(job.target, "node");
  const auto override_of = [](const char* target, const char* zone) {
    return Json{{"targetJobs", {{{"name", target}}}}, {"spec", {{"nodeSelector", {{"zone", zone}}}}}};
  };
  job = ReadForeignJob(
            ForeignKind::kTrainJob,
            Merged(SuspendedTrainJob(),
                   {{"spec",
                     {{"trainer", {{"numNodes", 4}}},
                      {"podTemplateOverrides", {override_of("initializer", "a"), override_of("node", "b")}}}}}))
            .value();
  EXPECT_EQ(job.nodes, 4);
  EXPECT_THAT(job.node_selector, UnorderedElementsAre(Pair("zone", "b")));
}

// What a kind's own validation does not allow, or allows in another version.
TEST(ForeignJobTest, WrongTypesAreErrorsOrAbsent) {
  const auto parallelism = [](const Json& value) {
    return ReadForeignJob(ForeignKind::kJob, Merged(SuspendedJob(), {{"spec", {{"parallelism", value}}}})).status();
  };
  for (const Json& value : {Json(-1), Json(1.5), Json("2"), Json(int64_t{1} << 40), Json::array()}) {
    EXPECT_THAT(parallelism(value), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec/parallelism")));
  }
  const Json odd = {
      {"spec", {{"podTemplateOverrides", {5, {{"targetJobs", "x"}}, {{"targetJobs", {5}}}}}, {"trainer", "x"}}},
      {"status", {{"conditions", {1, {{"type", 2}, {"status", "True"}}}}}}};
  EXPECT_THAT(ReadForeignJob(ForeignKind::kTrainJob, Merged(SuspendedTrainJob(), odd)), base::IsOk());
  EXPECT_FALSE(
      ReadForeignJob(ForeignKind::kJobSet, Merged(SuspendedJobSet(), {{"spec", {{"replicatedJobs", "x"}}}})).ok());
}

}  // namespace
}  // namespace medley::ops::recommend
