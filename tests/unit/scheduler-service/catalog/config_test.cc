#include "scheduler-service/catalog/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::sched {
namespace {

using base::StatusIs;
using testing::HasSubstr;
constexpr auto kInvalidConfig = absl::StatusCode::kInvalidArgument;

absl::StatusOr<CatalogConfig> ParseConfig(const std::string& text) { return ParseCatalogConfig(text, {}); }

TEST(CatalogConfigTest, AllFields) {
  const auto config = ParseConfig(R"(
lastGood: /tmp/last.json
tick: 1s
hysteresis: {relative: 0.05, minInterval: 5m}
acceptance: {maxStep: 4, minShareOfLast: 0.5}
feeds:
- {name: site, type: file, path: prices.yaml, priority: 10}
- {name: list, type: file, path: aws.csv, period: 1h, ttl: 24h, onDemandTtl: 336h, authoritative: false}
machines:
- {provider: aws, instanceType: p3.2xlarge, vcpus: 8, memory: 61Gi, gpuModel: v100, gpus: 1}
overrides:
- {match: {provider: aws, region: [us-east-1, us-east-2]}, priceAdjustment: "-10%", weight: 2}
- {match: {instanceType: "p3.*"}, price: 5}
resources:
- {name: v100, class: GPU, limit: 32, memory: 16Gi, hardware: v100, match: {gpuModel: v100, capacityType: spot}}
- {name: cpu, class: CPU, limit: 480, pricing: split, match: {instanceType: "m5.*"}}
)");
  ASSERT_THAT(config, base::IsOk());
  ASSERT_EQ(config->feeds.size(), 2u);
  EXPECT_EQ(config->feeds[0].feed->name(), "site");
  EXPECT_EQ(config->feeds[0].priority, 10);
  EXPECT_TRUE(config->feeds[0].feed->traits().authoritative);
  EXPECT_EQ(config->feeds[1].authoritative, false);
  EXPECT_EQ(config->feeds[1].ttl, std::chrono::hours(24));
  const BookOptions& book = config->poller.book;
  EXPECT_EQ(book.hysteresis.relative, 0.05);
  EXPECT_EQ(book.hysteresis.at_once, 0.1);
  EXPECT_EQ(book.acceptance.max_step, 4);
  EXPECT_EQ(book.machines.at({"aws", "p3.2xlarge"}).memory_bytes, 61.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(book.overrides[0].factor, 0.9);
  EXPECT_EQ(book.overrides[0].match.region.size(), 2u);
  EXPECT_EQ(book.resources[0].unit, UnitKind::kGpu);
  EXPECT_EQ(book.resources[1].unit, UnitKind::kCore);
  EXPECT_EQ(book.resources[1].pricing, UnitPricing::kSplit);
}

TEST(CatalogConfigTest, ErrorsNameThePath) {
  const std::string feed = "feeds: [{name: a, type: file, path: p}]\n";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"feeds: []", "feeds: must not be empty"},
      {"feeds: 3", "feeds: must be a list"},
      {"[1]", "the document: must be an object"},
      {feed + "fed: []", "fed: unknown field"},
      {"feeds: [{name: a, type: file, path: p, url: x}]", "feeds[0].url: unknown field"},
      {"feeds: [{name: a, type: file}]", "feeds[0].path: is required"},
      {"feeds: [{type: file, path: p}]", "feeds[0].name: is required"},
      {"feeds: [{name: a, type: ftp, path: p}]", "feeds[0].type: must be one of file, is 'ftp'"},
      {"feeds: [{name: a, type: file, path: p}, {name: a, type: file, path: p}]", "feeds[1].name: 'a' appears twice"},
      {"feeds: [{name: a, type: file, path: p, period: 5}]", "feeds[0].period: must be a string"},
      {"feeds: [{name: a, type: file, path: p, period: soon}]", "feeds[0].period: 'soon' is not a duration"},
      {"feeds: [{name: a, type: file, path: p, priority: 1.5}]", "feeds[0].priority: must be an integer"},
      {feed + "hysteresis: {relative: -1}", "hysteresis.relative: must not be negative"},
      {feed + "acceptance: {maxStep: 1}", "acceptance.maxStep: must be greater than 1"},
      {feed + "machines: [{provider: aws, instanceType: a, memory: much}]", "machines[0].memory:"},
      {feed + "overrides: [{match: {}, priceAdjustment: 10}]", "overrides[0].priceAdjustment: must be a string"},
      {feed + "overrides: [{match: {}}]", "overrides[0].price: must be greater than 0"},
      {feed + "overrides: [{price: 1}]", "overrides[0].match: is required"},
      {feed + "resources: [{name: a, match: {gpu: x}}]", "resources[0].match.gpu: unknown field"},
      {feed + "resources: [{name: a, match: {}, unit: rack}]", "resources[0].unit: must be one of gpu, core, instance"},
      {feed + "resources: [{name: a, match: {}}, {name: a, match: {}}]", "resources[1].name: 'a' appears twice"},
  };
  for (const auto& [text, message] : bad)
    EXPECT_THAT(ParseConfig(text), StatusIs(kInvalidConfig, HasSubstr(message))) << text;
}

}  // namespace
}  // namespace medley::sched
