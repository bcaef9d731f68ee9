// The published comparison, on the share of its data that the repository has (examples/traces/spot).
#include "tests/bench/economics/spot_cases.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "common/base/testing/status_matchers.h"

namespace medley::bench {
namespace {

constexpr char kOptimal[] = "multi_region_oracle_dp";

class PublishedTest : public testing::Test {
 protected:
  void SetUp() override {
    auto records = ReadSpotRecords(std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/examples/traces/spot");
    ASSERT_THAT(records, base::IsOk());
    records_ = *std::move(records);
    auto cases = PublishedCases(records_);
    ASSERT_THAT(cases, base::IsOk());
    // Those of the sample that are quick: one of the V100 record, of H100 some deadlines and numbers of zones.
    for (SpotCase& each : *cases) {
      const bool feasible = each.job.work_hours + each.job.start_hours <= each.job.deadline_hours;
      if (feasible && each.trace.zones.size() <= 7) cases_.push_back(std::move(each));
    }
    ASSERT_EQ(cases_.size(), 1u + 8u + 7u);
  }

  double PaperUsd(const SpotCase& spot_case, const std::string& policy) {
    const auto outcome = RunSpotCase(spot_case, records_.egress, policy);
    EXPECT_THAT(outcome, base::IsOk());
    if (!outcome.ok()) return 0;
    EXPECT_TRUE(outcome->in_time);
    return outcome->whole_ticks_usd - outcome->last_tick_usd;  // the authors' simulator leaves out the last tick
  }

  SpotRecords records_;
  std::vector<SpotCase> cases_;
};

TEST_F(PublishedTest, TheOptimumCostsWhatThePaperSays) {
  for (const SpotCase& each : cases_) {
    EXPECT_NEAR(PaperUsd(each, "optimum"), each.published.at(kOptimal), 1e-4 * each.published.at(kOptimal))
        << each.scenario;
  }
}

TEST_F(PublishedTest, UniformProgressCostsWhatThePaperSays) {
  const std::pair<const char*, const char*> forms[] = {{"up-s", "multi_region_rc_cr_threshold_eager_failover"},
                                                       {"up-a", "multi_region_availability_probe_simple"},
                                                       {"up-ap", "multi_region_probe_cost_ratio"}};
  for (const auto& [ours, theirs] : forms) {
    for (const SpotCase& each : cases_) {
      EXPECT_NEAR(PaperUsd(each, ours), each.published.at(theirs), 0.01 * each.published.at(theirs))
          << ours << " " << each.scenario;
    }
  }
}

TEST_F(PublishedTest, MedleyIsNeverLateAndCostsAboutWhatThePublishedPolicyDoes) {
  std::vector<double> to_published, to_optimum;
  for (const SpotCase& each : cases_) {
    const double usd = PaperUsd(each, "medley");
    for (const char* name : {"unified_cost_model_risk", "unified_cost_model_rate_ratio"}) {
      if (each.published.contains(name)) to_published.push_back(usd / each.published.at(name));
    }
    to_optimum.push_back(usd / each.published.at(kOptimal));
  }
  ASSERT_EQ(to_published.size(), cases_.size());
  std::sort(to_published.begin(), to_published.end());
  EXPECT_LE(to_published[to_published.size() / 2], 1.05);
  EXPECT_LE(to_published.back(), 1.25);
  std::sort(to_optimum.begin(), to_optimum.end());
  EXPECT_LE(to_optimum[to_optimum.size() / 2], 1.05);
}

TEST_F(PublishedTest, APolicyThatDoesNotExistIsRefused) {
  EXPECT_THAT(RunSpotCase(cases_[0], records_.egress, "luck"), base::StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace medley::bench
