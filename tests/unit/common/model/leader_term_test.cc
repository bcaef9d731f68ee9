#include "common/model/leader_term.h"

#include <gtest/gtest.h>

#include "common/base/details.h"
#include "common/base/status.h"

namespace medley::model {
namespace {

TEST(LeaderTermTest, StaleTermErrorCarriesTheNewerTerm) {
  const absl::Status refused = StaleTerm(3, 7);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::Message(refused), "leader term 3 is stale: a request of leader term 7 was served before");
  EXPECT_EQ(NewerTerm(refused), 7);
  EXPECT_EQ(NewerTerm(base::Annotate(refused, "coordinator x: ApplyPlan")), 7);
}

TEST(LeaderTermTest, OtherErrorsHaveNoNewerTerm) {
  EXPECT_FALSE(NewerTerm(absl::OkStatus()));
  EXPECT_FALSE(NewerTerm(base::FailedPrecondition("plan 1 is older than plan 2")));
  EXPECT_FALSE(NewerTerm(base::WithDetails(base::FailedPrecondition("x"), "leader-term=")));
  EXPECT_FALSE(NewerTerm(base::WithDetails(base::FailedPrecondition("x"), "leader-term=7x")));
  EXPECT_FALSE(NewerTerm(base::WithDetails(base::FailedPrecondition("x"), "leader-term=99999999999999999999")));
  EXPECT_FALSE(NewerTerm(base::WithDetails(base::Aborted("x"), "leader-term=7")));
}

}  // namespace
}  // namespace medley::model
