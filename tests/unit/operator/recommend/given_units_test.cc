#include "operator/recommend/given_units.h"

#include <gtest/gtest.h>

#include "operator/recommend/steps.h"
#include "tests/unit/operator/recommend/jobs.h"

namespace medley::ops::recommend {
namespace {

kube::Object Answered(const RecordKeys& keys, const std::string& uid) {
  kube::Object job = SuspendedJob();
  job.mutable_json()["metadata"]["uid"] = uid;
  job.SetAnnotation(kChosenAnnotation, R"({"pool": "gpu", "nodes": 4})");
  job.SetAnnotation(kChosenByAnnotation, SignGiven(keys, uid, {"gpu", 4}));
  return job;
}

TEST(GivenUnitsTest, OnlyTheOperatorsOwnAnswersCount) {
  const RecordKeys keys({std::string(32, 'a')}), others({std::string(32, 'b')});
  const RecordKeys newer({std::string(32, 'c'), std::string(32, 'a')});
  kube::Object job = Answered(keys, "u-1");
  EXPECT_EQ(ReadGiven(keys, job), (GivenUnits{"gpu", 4}));
  EXPECT_EQ(ReadGiven(newer, job), (GivenUnits{"gpu", 4}));  // the key was rotated
  EXPECT_EQ(ReadGiven(others, job), std::nullopt);
  // Copied to another job, and changed.
  kube::Object copy = job;
  copy.mutable_json()["metadata"]["uid"] = "u-2";
  EXPECT_EQ(ReadGiven(keys, copy), std::nullopt);
  for (const char* answer : {R"({"pool": "gpu", "nodes": 5})", R"({"pool": "cpu", "nodes": 4})", R"({"pool": "gpu"})",
                             R"({"pool": "gpu", "nodes": 1e99})", R"({"pool": 1, "nodes": 4})", "[]", "x", ""}) {
    SCOPED_TRACE(answer);
    kube::Object changed = job;
    changed.SetAnnotation(kChosenAnnotation, answer);
    EXPECT_EQ(ReadGiven(keys, changed), std::nullopt);
  }
  job.SetAnnotation(kChosenByAnnotation, "");
  EXPECT_EQ(ReadGiven(keys, job), std::nullopt);
  EXPECT_EQ(ReadGiven(keys, SuspendedJob()), std::nullopt);
}

}  // namespace
}  // namespace medley::ops::recommend
