// The bodies are built in the format that Prometheus documents, because we know of no recorded ones under a free
// licence. The prices come from tests/data/prices/feeds/aws_on_demand.csv. tests/integration/scheduler uses a real
// Prometheus.
#include "scheduler-service/feeds/prometheus_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr double kEvaluated = 1785000000.781;

std::string Body(const std::string& result, const std::string& more = "") {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}" + more + "}";
}

std::string Series(const std::string& labels, const std::string& value) {
  return fmt::format(R"({{"metric":{{{}}},"value":[{:.3f},"{}"]}})", labels, kEvaluated, value);
}

std::string Offering(const std::string& type, const std::string& capacity, const std::string& zone,
                     const std::string& value) {
  return Series(fmt::format(R"("instance_type":"{}","capacity_type":"{}","zone":"{}")", type, capacity, zone), value);
}

PromVector Vector(const std::string& result) {
  auto vector = ParsePromVector(Body(result));
  MEDLEY_CHECK(vector.ok(), base::ToString(vector.status()));
  return *std::move(vector);
}

const base::WallTime kScrapeTime = base::WallTime(base::seconds(1785000100));

TEST(PromVectorTest, LabelsTimesAndValues) {
  const auto vector = ParsePromVector(
      Body(Series(R"("__name__":"up","job":"a")", "1") + "," + Series("", "NaN") + "," + Series(R"("a":"b")", "+Inf"),
           R"(,"warnings":["a query warning"],"infos":["x"])"));
  ASSERT_THAT(vector, base::IsOk());
  ASSERT_THAT(vector->samples, SizeIs(3));
  EXPECT_EQ(vector->samples[0].labels.at("job"), "a");
  EXPECT_EQ(vector->samples[0].value, 1);
  EXPECT_DOUBLE_EQ(vector->samples[0].evaluated, kEvaluated);
  EXPECT_TRUE(std::isnan(vector->samples[1].value));
  EXPECT_TRUE(std::isinf(vector->samples[2].value));
  EXPECT_THAT(vector->warnings, ElementsAre("a query warning"));
}

TEST(PromVectorTest, ErrorsIncludePrometheusMessage) {
  EXPECT_THAT(ParsePromVector(R"({"status":"error","errorType":"bad_data","error":"parse error at char 3"})"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("bad_data: parse error at char 3")));
  EXPECT_THAT(ParsePromVector(R"({"status":"error","errorType":"timeout","error":"query timed out"})"),
              StatusIs(StatusCode::kUnavailable, HasSubstr("timeout: query timed out")));
}

TEST(PromVectorTest, OtherResultTypesAreErrors) {
  const auto refused = [](const std::string& body, const std::string& why) {
    EXPECT_THAT(ParsePromVector(body), StatusIs(StatusCode::kInvalidArgument, HasSubstr(why))) << body;
  };
  refused(R"({"status":"success","data":{"resultType":"scalar","result":[1,"2"]}})",
          "data.resultType: must be vector, is 'scalar'");
  refused(R"({"status":"success","data":{"resultType":"matrix","result":[]}})", "must be vector, is 'matrix'");
  refused(R"({"status":"success"})", "data: is required");
  refused(R"({"status":"later"})", "status: must be success or error, is 'later'");
  refused("<html>login</html>", "broken JSON at line 1, column 1");
  refused("", "the document is empty");
  refused(Body(R"({"metric":{},"value":[1,2]})"), "data.result[0].value: must be [time, \"value\"]");
  refused(Body(Series("", "1") + R"(,{"metric":{"a":1},"value":[1,"2"]})"),
          "data.result[1].metric.a: must be a string");
  refused(Body(Series("", "12abc")), "data.result[0].value[1]: '12abc' is not a number");
  refused(Body(R"({"metric":{},"value":[-5,"2"]})"), "is not a time");
}

TEST(KarpenterPricesTest, OfferingsWithAvailabilityAndAge) {
  // 3.06 and 0.526 are AWS' on-demand prices of 2026-07-20.
  std::map<std::string, std::string> on_demand;
  for (const auto& row : PriceRows("aws_on_demand.csv")) on_demand[row[0]] = row[2];
  KarpenterAnswers answers;
  answers.price = Vector(Offering("p3.2xlarge", "on-demand", "us-east-1b", on_demand.at("p3.2xlarge")) + "," +
                         Offering("p3.2xlarge", "spot", "us-east-1b", "1.0274") + "," +
                         Offering("g4dn.xlarge", "on-demand", "us-east-1-atl-1a", on_demand.at("g4dn.xlarge")));
  answers.available = Vector(Offering("p3.2xlarge", "on-demand", "us-east-1b", "1") + "," +
                             Offering("p3.2xlarge", "spot", "us-east-1b", "0"));
  answers.sampled = Vector(Offering("p3.2xlarge", "spot", "us-east-1b", fmt::format("{:.3f}", kEvaluated - 240)));
  const auto prices = KarpenterPrices(answers, {}, kScrapeTime);
  ASSERT_THAT(prices, base::IsOk());
  ASSERT_THAT(prices->entries, SizeIs(3));
  const CatalogEntry& first = prices->entries[0];
  EXPECT_EQ(KeyOf(first), "aws/us-east-1/us-east-1b/p3.2xlarge/on-demand");
  EXPECT_DOUBLE_EQ(first.price_per_instance_hour, 3.06);
  EXPECT_TRUE(first.available);
  EXPECT_EQ(first.observed_at, kScrapeTime);
  const CatalogEntry& spot = prices->entries[1];
  EXPECT_FALSE(spot.available);
  EXPECT_GT(spot.unavailable_until, kScrapeTime);
  // By Prometheus' clock, the sample is 240 s older than the evaluation. So observed_at is 240 s ago by our clock.
  EXPECT_NEAR(base::ToSeconds(kScrapeTime - spot.observed_at), 240, 0.01);
  EXPECT_EQ(KeyOf(prices->entries[2]), "aws/us-east-1/us-east-1-atl-1a/g4dn.xlarge/on-demand");
}

TEST(KarpenterPricesTest, UnknownAndReservedPricesAreSkipped) {
  KarpenterAnswers answers;
  answers.price =
      Vector(Offering("a.large", "spot", "us-east-1a", "0") + "," + Offering("b.large", "spot", "us-east-1a", "NaN") +
             "," + Offering("c.large", "reserved", "us-east-1a", "3.06e-07"));
  const auto prices = KarpenterPrices(answers, {}, kScrapeTime);
  ASSERT_THAT(prices, base::IsOk());
  EXPECT_THAT(prices->entries, SizeIs(0));
  EXPECT_EQ(prices->skipped, 3);
}

TEST(KarpenterPricesTest, InvalidPricesAreErrors) {
  KarpenterAnswers answers;
  answers.price = Vector(Offering("a.large", "spot", "us-east-1a", "+Inf"));
  EXPECT_THAT(KarpenterPrices(answers, {}, kScrapeTime),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("instance_type=a.large,zone=us-east-1a")));
  answers.price = Vector(Offering("a.large", "spot", "us-east-1a", "-1"));
  EXPECT_THAT(KarpenterPrices(answers, {}, kScrapeTime),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("-1 is not")));
  answers.price = Vector(Series(R"("instance_type":"a.large")", "1"));
  EXPECT_THAT(KarpenterPrices(answers, {}, kScrapeTime),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("must have the labels")));
}

std::string Node(const std::string& node, const std::string& type, const std::string& id, const std::string& value) {
  return Series(
      fmt::format(R"("node":"{}","instance_type":"{}","region":"us-central1","provider_id":"{}")", node, type, id),
      value);
}

TEST(OpenCostPricesTest, NodesWithSpotGpusAndZones) {
  OpenCostAnswers answers;
  answers.price =
      Vector(Node("n1", "a2-highgpu-2g", "gce://p/us-central1-c/n1", "3.856") + "," +
             Node("n2", "e2-standard-4", "azure:///subscriptions/x/y", "0.134") + "," +
             Node("n3", "strange", "", "0.2") + "," + Node("n4", "free", "", "0") + "," + Node("n5", "", "", "1"));
  answers.sampled = Vector(Series(R"("node":"n1")", fmt::format("{:.3f}", kEvaluated - 30)));
  answers.gpus = Vector(Series(R"("node":"n1")", "2") + "," + Series(R"("node":"n2")", "0"));
  answers.spot = Vector(Series(R"("node":"n1")", "1") + "," + Series(R"("node":"n2")", "0"));
  answers.defaults = Vector(Series(R"("node":"n3")", "0.031611"));
  const auto prices = OpenCostPrices(answers, {"on-prem", "here"}, kScrapeTime);
  ASSERT_THAT(prices, base::IsOk());
  ASSERT_THAT(prices->entries, SizeIs(2));
  EXPECT_EQ(KeyOf(prices->entries[0]), "gcp/us-central1/us-central1-c/a2-highgpu-2g/spot");
  EXPECT_EQ(prices->entries[0].shape.gpus, 2);
  EXPECT_EQ(prices->entries[0].offering->units_per_instance, 2);
  EXPECT_NEAR(base::ToSeconds(kScrapeTime - prices->entries[0].observed_at), 30, 0.01);
  EXPECT_EQ(KeyOf(prices->entries[1]), "azure/us-central1//e2-standard-4/on-demand");
  EXPECT_EQ(prices->entries[1].shape.gpus, 0);
  EXPECT_EQ(prices->skipped, 3);
  ASSERT_THAT(prices->warnings, SizeIs(1));
  EXPECT_THAT(prices->warnings[0], StatusIs(StatusCode::kNotFound, HasSubstr("'n3'")));
}

}  // namespace
}  // namespace medley::sched
