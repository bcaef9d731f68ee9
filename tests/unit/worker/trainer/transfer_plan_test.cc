#include "worker/trainer/transfer_plan.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::worker {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;

TEST(TransferPlanTest, TextRoundTrips) {
  for (const Holding& holding : {Holding{{0, 1, 12}, {3}}, Holding{{}, {}}, Holding{{}, {7, 8}}}) {
    EXPECT_THAT(ParseHolding(FormatHolding(holding)), IsOkAndHolds(holding));
  }
  EXPECT_THAT(ParseHolding("1,2"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseHolding("1,x;2"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TransferPlanTest, TheFirstHolderSendsToEveryoneThatNeeds) {
  const std::vector<Holding> members{{{}, {}}, {{1, 2}, {}}, {{1, 2}, {3}}, {{3}, {1}}, {{}, {1, 2, 3}}};
  EXPECT_THAT(PlanMoves(members),
              IsOkAndHolds(std::vector<Move>{{1, 1, 3}, {1, 1, 4}, {2, 1, 4}, {3, 3, 2}, {3, 3, 4}}));
}

TEST(TransferPlanTest, NothingMovesWhenNobodyNeeds) {
  const std::vector<Holding> members{{{1}, {}}, {{1}, {}}};
  EXPECT_THAT(PlanMoves(members), IsOkAndHolds(std::vector<Move>{}));
}

TEST(TransferPlanTest, ALostOperationIsAnError) {
  const std::vector<Holding> members{{{1}, {}}, {{}, {2}}};
  EXPECT_THAT(PlanMoves(members), StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("operation 2")));
}

}  // namespace
}  // namespace medley::worker
