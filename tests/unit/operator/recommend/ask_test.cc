#include "operator/recommend/ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/recommend/jobs.h"

namespace medley::ops::recommend {
namespace {

using base::StatusIs;
using kube::Json;
using testing::ElementsAre;
using testing::HasSubstr;

kube::Object With(const Json& annotations) {
  kube::Object job = SuspendedJob();
  for (const auto& [name, value] : annotations.items()) {
    job.mutable_json()["metadata"]["annotations"]["medley.dev/" + name] = value;
  }
  return job;
}

TEST(AskTest, ReadsGoalsAndSpeeds) {
  const auto ask = ReadAsk(With({{"throughput", R"({"gpu": {"1": 1300, "4": 4700}, "cpu": 90.5})"},
                                 {"samples", "1e8"},
                                 {"units", "4, 1,2,4"},
                                 {"pools", "gpu, cpu"},
                                 {"deadline", "12h"},
                                 {"budget-usd", "40"},
                                 {"min-throughput", "1000"},
                                 {"max-usd-per-hour", "5.5"},
                                 {"fastest", "true"}}));
  ASSERT_THAT(ask, base::IsOk());
  EXPECT_EQ(ask->speeds.at("gpu").Of(4), 4700);
  EXPECT_EQ(ask->speeds.at("gpu").Of(2), 0);
  EXPECT_EQ(ask->speeds.at("cpu").Of(2), 181);
  EXPECT_THAT(ask->sizes, ElementsAre(1, 2, 4));
  EXPECT_THAT(ask->pools, ElementsAre("gpu", "cpu"));
  EXPECT_EQ(ask->samples, 1e8);
  EXPECT_EQ(ask->bounds.deadline_seconds, 12 * 3600);
  EXPECT_EQ(ask->bounds.budget_usd, 40);
  EXPECT_EQ(ask->bounds.min_throughput, 1000);
  EXPECT_EQ(ask->bounds.max_cost_per_hour, 5.5);
  EXPECT_EQ(ask->objective, model::Objective::kTime);
}

TEST(AskTest, TheFewestUsdInAllOrPerHourCountByDefault) {
  EXPECT_EQ(ReadAsk(With({{"throughput", R"({"gpu": 1})"}}))->objective, model::Objective::kCostPerHour);
  EXPECT_EQ(ReadAsk(With({{"throughput", R"({"gpu": 1})"}, {"samples", "10"}}))->objective, model::Objective::kCost);
}

TEST(AskTest, SaysWhatIsWrongWithAnAnnotation) {
  const char* speeds = R"({"gpu": 1})";
  const std::vector<std::pair<Json, std::string>> cases = {
      {Json::object(), "medley.dev/throughput: needed"},
      {{{"throughput", "1200"}}, "medley.dev/throughput: not a JSON object"},
      {{{"throughput", "{"}}, "medley.dev/throughput: not a JSON object"},
      {{{"throughput", "{}"}}, "medley.dev/throughput: not a JSON object"},
      {{{"throughput", "\xff\xfe"}}, "medley.dev/throughput: not a JSON object"},
      {{{"throughput", R"({"gpu": "1300"})"}}, "gpu: needs samples/s of one node"},
      {{{"throughput", R"({"gpu": -1})"}}, "gpu: needs samples/s of one node"},
      {{{"throughput", R"({"gpu": 1e300})"}}, "gpu: needs samples/s of one node"},
      {{{"throughput", R"({"gpu": null})"}}, "gpu: needs samples/s of one node"},
      {{{"throughput", R"({"gpu": {}})"}}, "gpu: names no number of nodes"},
      {{{"throughput", R"({"gpu": {"0": 5}})"}}, "gpu: '0' is not a number of nodes from 1 to 100000"},
      {{{"throughput", R"({"gpu": {"100001": 5}})"}}, "'100001' is not a number of nodes"},
      {{{"throughput", R"({"gpu": {"2": [5]}})"}}, "gpu: 2 nodes: needs samples/s above 0"},
      {{{"throughput", speeds}, {"samples", "many"}}, "medley.dev/samples: 'many' is not a number above 0"},
      {{{"throughput", speeds}, {"samples", "nan"}}, "medley.dev/samples: 'nan' is not a number above 0"},
      {{{"throughput", speeds}, {"samples", "inf"}}, "medley.dev/samples: 'inf' is not a number above 0"},
      {{{"throughput", speeds}, {"units", "1,x"}}, "medley.dev/units: 'x' is not a number of nodes"},
      {{{"throughput", speeds}, {"units", "-1"}}, "medley.dev/units: '-1' is not a number of nodes"},
      {{{"throughput", speeds}, {"pools", "cpu"}}, "medley.dev/throughput has no samples/s of pool 'cpu'"},
      {{{"throughput", speeds}, {"deadline", "soon"}}, "medley.dev/deadline: 'soon' is not a duration"},
      {{{"throughput", speeds}, {"deadline", "-1h"}, {"samples", "1"}}, "medley.dev/deadline: '-1h' is not a duration"},
      {{{"throughput", speeds}, {"deadline", "1h"}}, "medley.dev/samples: needed with a deadline or a budget"},
      {{{"throughput", speeds}, {"budget-usd", "1"}}, "medley.dev/samples: needed with a deadline or a budget"},
      {{{"throughput", speeds}, {"fastest", "yes"}}, "medley.dev/fastest: 'yes' is neither true nor false"},
      {{{"throughput", speeds}, {"deadlin", "1h"}}, "medley.dev/deadlin: unknown"},
      {{{"throughput", speeds}, {"samples", std::string(70'000, '1')}}, "medley.dev/samples: longer than 65536 bytes"},
      {{{"throughput", speeds}, {"samples", 5}}, "medley.dev/samples: longer than 65536 bytes"},
  };
  for (const auto& [annotations, message] : cases) {
    SCOPED_TRACE(message);
    EXPECT_THAT(ReadAsk(With(annotations)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

}  // namespace
}  // namespace medley::ops::recommend
