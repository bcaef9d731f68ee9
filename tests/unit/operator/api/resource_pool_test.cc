#include "operator/api/resource_pool.h"

#include "common/base/testing/status_matchers.h"
#include "operator/api/pool_status.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using kube::Json;
using testing::HasSubstr;

kube::Object Pool(const char* spec) {
  return kube::Object(Json{{"metadata", {{"name", "v100-spot"}}}, {"spec", Json::parse(spec)}});
}

TEST(ResourcePoolTest, ReadsEverything) {
  const auto pool = ResourcePool::FromObject(Pool(R"({
    "class": "GPU", "unit": {"resources": {"nvidia.com/gpu": 1, "cpu": "4"}, "env": [{"name": "A", "value": "b"}]},
    "memory": "16Gi", "nodeSelector": {"gpu": "v100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "limit": 32, "scaling": "Autoscaled", "provisionTimeout": "20m", "namespaces": ["ml"],
    "price": {"offering": {"provider": "aws", "region": "us-east-1", "instanceType": "p3", "capacityType": "spot",
                           "unitsPerInstance": 8}}})"));
  ASSERT_THAT(pool, IsOk());
  EXPECT_EQ(pool->cls, model::ResourceClass::kGpu);
  EXPECT_EQ(pool->unit_resources.at("nvidia.com/gpu"), "1");
  EXPECT_EQ(pool->unit_env.at(0), std::make_pair(std::string("A"), std::string("b")));
  EXPECT_EQ(pool->memory_bytes, 16.0 * (int64_t{1} << 30));
  EXPECT_EQ(pool->scaling, PoolScaling::kAutoscaled);
  EXPECT_EQ(pool->provision_timeout_seconds, 1200);
  EXPECT_EQ(pool->offering->units_per_instance, 8);
  EXPECT_TRUE(pool->Allows("ml"));
  EXPECT_FALSE(pool->Allows("default"));
}

TEST(ResourcePoolTest, TheErrorNamesAnInvalidQuantity) {
  EXPECT_THAT(ResourcePool::FromObject(Pool(R"({"unit": {"resources": {"cpu": "four"}}})")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.unit.resources[cpu]")));
}

TEST(PoolStatusTest, SurvivesJson) {
  PoolStatus status;
  status.usd_per_unit_hour = 0.55;
  status.price_source = "file";
  status.zone = "us-east-1b";
  status.units = {32, 8, 3, 5};
  status.conditions.Set(kPricedCondition, ConditionStatus::kTrue, Reason::kCatalogPrice, "0.55 USD", 1,
                        base::WallTime());
  EXPECT_EQ(PoolStatus::FromJson(status.ToJson()), status);
}

// No price other than 0 is published as 0.
TEST(PoolStatusTest, SmallPricesSurviveJson) {
  for (const double price : {1e-15, 1e-12, 1e-9, 4.9e-7, 0.000999, 0.001, 1e9}) {
    PoolStatus status;
    status.usd_per_unit_hour = price;
    const PoolStatus read = PoolStatus::FromJson(status.ToJson());
    EXPECT_NEAR(read.usd_per_unit_hour / price, 1, 1e-3) << price;
  }
}

TEST(PoolStatusTest, DeletingAPoolIsWarnedOfWhileJobsHoldUnits) {
  kube::Object pool(Json{{"metadata", {{"name", "office"}}}});
  EXPECT_EQ(DeletionWarning(pool), "");
  pool.mutable_json()["status"] = {{"units", {{"used", 0}}}};
  EXPECT_EQ(DeletionWarning(pool), "");
  pool.mutable_json()["status"] = {{"units", {{"used", 3}}}};
  EXPECT_THAT(DeletionWarning(pool), testing::HasSubstr("units of ResourcePool office that jobs hold: 3; these jobs"));
}

}  // namespace
}  // namespace medley::ops
