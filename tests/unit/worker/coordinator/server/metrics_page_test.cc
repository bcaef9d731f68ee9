#include "worker/coordinator/server/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace medley::worker {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsPageTest, OnlyReplicasThatDifferHaveAFractionAndARatio) {
  job::v1::Observation seen;
  EXPECT_THAT(MetricsText(seen), Not(AnyOf(HasSubstr("agreement"), HasSubstr("synchronisation"))));
  seen.mutable_agreement()->set_fraction(0.25);
  seen.mutable_agreement()->set_ratio(0.5);
  EXPECT_THAT(MetricsText(seen), AllOf(HasSubstr("\nmedley_coordinator_agreement_fraction 0.25\n"),
                                       HasSubstr("\nmedley_coordinator_synchronisation_ratio 0.5\n")));
}

TEST(MetricsPageTest, CountsSlowTrainers) {
  job::v1::Observation seen;
  EXPECT_THAT(MetricsText(seen), HasSubstr("\nmedley_coordinator_left_out_members 0\n"));
  seen.add_left_out()->set_member("job-0-a-1");
  EXPECT_THAT(MetricsText(seen), HasSubstr("\nmedley_coordinator_left_out_members 1\n"));
}

}  // namespace
}  // namespace medley::worker
