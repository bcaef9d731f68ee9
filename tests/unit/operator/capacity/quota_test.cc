#include "operator/capacity/quota.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using kube::Json;

QuotaFacts Quota(const char* hard, const char* used, const char* spec = "{}") {
  return QuotaFactsOf(kube::Object(Json{{"metadata", {{"name", "q"}, {"namespace", "ns"}}},
                                        {"spec", Json::parse(spec)},
                                        {"status", {{"hard", Json::parse(hard)}, {"used", Json::parse(used)}}}}));
}

PodDemand Unit() {
  PodDemand unit;
  unit.amounts.requests = {{"cpu", 2000}, {"memory", 1 << 30}, {"nvidia.com/gpu", 1}};
  unit.amounts.limits = unit.amounts.requests;
  return unit;
}

int64_t Units(const char* hard, const char* used, const char* spec = "{}") {
  return RoomOf(Quota(hard, used, spec), Unit(), {}).units;
}

TEST(QuotaTest, EachNameIsMeasuredInItsOwnWay) {
  EXPECT_EQ(Units(R"({"requests.cpu": "9"})", R"({"requests.cpu": "3"})"), 3);
  EXPECT_EQ(Units(R"({"cpu": "9"})", R"({"cpu": "3500m"})"), 2);
  EXPECT_EQ(Units(R"({"limits.cpu": "5"})", "{}"), 2);
  EXPECT_EQ(Units(R"({"requests.memory": "2500Mi"})", "{}"), 2);
  EXPECT_EQ(Units(R"({"limits.memory": "10Gi"})", R"({"limits.memory": "9Gi"})"), 1);
  EXPECT_EQ(Units(R"({"requests.nvidia.com/gpu": "8"})", R"({"requests.nvidia.com/gpu": "6"})"), 2);
  EXPECT_EQ(Units(R"({"pods": "3"})", R"({"pods": "1"})"), 2);
  EXPECT_EQ(Units(R"({"count/pods": "1"})", R"({"count/pods": "1"})"), 0);
  EXPECT_GT(Units(R"({"services": "0", "requests.storage": "0", "count/jobs.batch": "0"})", "{}"), 1000);
  EXPECT_EQ(Units(R"({"pods": "1"})", R"({"pods": "4"})"), 0);  // the quota is lower than its use
}

TEST(QuotaTest, TheTightestResourceLimitsAndIsNamed) {
  const QuotaRoom room = RoomOf(Quota(R"({"pods": "9", "requests.cpu": "4"})", "{}"), Unit(), {});
  EXPECT_EQ(room.units, 2);
  EXPECT_EQ(room.bound, "ResourceQuota q: requests.cpu");
}

TEST(QuotaTest, UnitsOfTheJobCountAsFree) {
  const QuotaFacts quota = Quota(R"({"requests.cpu": "8"})", R"({"requests.cpu": "8"})");
  EXPECT_EQ(RoomOf(quota, Unit(), {{"requests.cpu", 4000}}).units, 2);
}

TEST(QuotaTest, APodWithoutAMemoryRequestIsRefusedByAMemoryQuota) {
  PodDemand unit = Unit();
  unit.amounts.requests.erase("memory");
  unit.amounts.limits.clear();
  EXPECT_EQ(RoomOf(Quota(R"({"requests.memory": "9Gi"})", "{}"), unit, {}).units, 0);
  EXPECT_EQ(RoomOf(Quota(R"({"limits.cpu": "9"})", "{}"), unit, {}).units, 0);
  EXPECT_GT(RoomOf(Quota(R"({"requests.amd.com/gpu": "0"})", "{}"), unit, {}).units, 1000);
}

TEST(QuotaTest, WithoutAStatusTheSpecCounts) {
  const QuotaFacts quota = QuotaFactsOf(
      kube::Object(Json::parse(R"({"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": {"pods": "2"}}})")));
  EXPECT_EQ(RoomOf(quota, Unit(), {}).units, 2);
}

bool Counts(const char* spec, const QuotaSubject& pod) { return CountsAgainst(Quota("{}", "{}", spec), pod); }

TEST(QuotaTest, Scopes) {
  EXPECT_TRUE(Counts(R"({"scopes": ["NotTerminating", "NotBestEffort"]})", {}));
  EXPECT_FALSE(Counts(R"({"scopes": ["Terminating"]})", {}));
  EXPECT_TRUE(Counts(R"({"scopes": ["Terminating"]})", {.terminating = true}));
  EXPECT_FALSE(Counts(R"({"scopes": ["BestEffort"]})", {}));
  EXPECT_TRUE(Counts(R"({"scopes": ["BestEffort"]})", {.best_effort = true}));
  EXPECT_FALSE(Counts(R"({"scopes": ["CrossNamespacePodAffinity"]})", {}));
  EXPECT_TRUE(Counts(R"({"scopes": ["PriorityClass"]})", {.priority_class = "high"}));
  EXPECT_FALSE(Counts(R"({"scopes": ["PriorityClass"]})", {}));
}

TEST(QuotaTest, ScopeSelectorsOfPriorityClasses) {
  const auto selects = [](const char* op, const char* priority) {
    const Json spec = {{"scopeSelector",
                        {{"matchExpressions", Json::array({{{"scopeName", "PriorityClass"},
                                                            {"operator", op},
                                                            {"values", Json::array({"high", "mid"})}}})}}}};
    return Counts(spec.dump().c_str(), {.priority_class = priority});
  };
  EXPECT_TRUE(selects("In", "high"));
  EXPECT_FALSE(selects("In", "low"));
  EXPECT_FALSE(selects("In", ""));
  EXPECT_FALSE(selects("NotIn", "mid"));
  EXPECT_TRUE(selects("NotIn", "low"));
  EXPECT_TRUE(selects("NotIn", ""));
  EXPECT_TRUE(selects("Exists", "low"));
  EXPECT_TRUE(selects("DoesNotExist", ""));
}

TEST(QuotaTest, AQuotaOnOtherResourcesDoesNotLimit) {
  const QuotaFacts quota = Quota(R"({"pods": "0"})", "{}", R"({"scopes": ["BestEffort"]})");
  EXPECT_GT(RoomOf(quota, Unit(), {}).units, 1000);
}

}  // namespace
}  // namespace medley::ops
