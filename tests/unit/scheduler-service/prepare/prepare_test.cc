#include "scheduler-service/prepare/prepare.h"
#include "common/model/model.h"
#include "common/model/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/catalog/price_file.h"

namespace medley::sched {
namespace {

using base::IsOk;
using testing::HasSubstr;

Catalog Prices(std::string_view text) {
  auto entries = ParsePriceFile(text, "prices.yaml", base::WallTime());
  EXPECT_THAT(entries, IsOk());
  return {1, "", entries.ok() ? *std::move(entries) : std::vector<CatalogEntry>()};
}

model::PlanRequest OneLayer() {
  model::PlanRequest request;
  request.training.profile_batch_size = 64;
  model::Layer layer;
  layer.name = "fc";
  layer.kind = "FC";
  layer.weight_bytes = 40000;
  layer.output_bytes = 400;
  layer.attributes = {{"inputs", "100"}, {"outputs", "100"}};
  request.model.layers = {layer};
  return request;
}

// The resources come with the prices, and the datasheet with the resources.
TEST(PrepareRequestTest, ResourcesOfTheCatalogGetAnalyticProfiles) {
  const auto hardware = HardwareCatalog::Builtin();
  ASSERT_THAT(hardware, IsOk());
  const Catalog catalog =
      Prices("entries: [{resourceType: gpu, class: GPU, limit: 4, pricePerUnitHour: 2, hardware: v100}]");
  model::PlanRequest request = OneLayer();
  ASSERT_THAT(PrepareRequest(catalog, *hardware, request), IsOk());
  ASSERT_EQ(request.resources.size(), 1u);
  EXPECT_EQ(request.resources[0].price_per_unit_hour, 2);
  ASSERT_EQ(request.model.layers[0].profiles.size(), 1u);
  EXPECT_EQ(request.model.layers[0].profiles[0].resource_type, "gpu");
  EXPECT_EQ(request.model.layers[0].profiles[0].origin, "analytic");
}

TEST(PrepareRequestTest, TheChosenZoneIsReported) {
  const auto hardware = HardwareCatalog::Builtin();
  ASSERT_THAT(hardware, IsOk());
  const Catalog catalog = Prices(R"(entries:
- {offering: {provider: aws, region: r, zone: a, instanceType: p3, capacityType: spot}, pricePerInstanceHour: 3}
- {offering: {provider: aws, region: r, zone: b, instanceType: p3, capacityType: spot}, pricePerInstanceHour: 2}
- {offering: {provider: aws, region: r, zone: c, instanceType: p3, capacityType: spot}, pricePerInstanceHour: 1,
   available: false})");
  model::PlanRequest request = OneLayer();
  request.resources = {{"v100"}};
  request.resources[0].offering = model::Offering{"aws", "r", "", "p3", "spot", 1};
  ASSERT_THAT(PrepareRequest(catalog, *hardware, request), IsOk());
  EXPECT_EQ(request.resources[0].price_per_unit_hour, 2);
  EXPECT_EQ(request.resources[0].offering->zone, "b");
}

TEST(PrepareRequestTest, AnUnknownDatasheetIsAnError) {
  const auto hardware = HardwareCatalog::Builtin();
  ASSERT_THAT(hardware, IsOk());
  model::PlanRequest request = OneLayer();
  request.resources = {{"gpu", model::ResourceClass::kGpu, 1}};
  request.resources[0].hardware = "abacus";
  EXPECT_THAT(base::Message(PrepareRequest(Catalog(), *hardware, request)), HasSubstr("resources[0].hardware"));
}

}  // namespace
}  // namespace medley::sched
