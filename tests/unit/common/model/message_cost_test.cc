#include "common/model/message_cost.h"

#include <gtest/gtest.h>

#include "common/model/link_speed.h"
#include "common/model/resource.h"

namespace medley::model {
namespace {

TEST(MessageCostTest, IsInProportionBetweenMessagesInARowAndAmidComputation) {
  Resource unit;
  unit.processor_seconds_per_message = 8e-5;
  unit.processor_seconds_per_message_in_a_row = 5e-5;
  unit.computed_bytes_per_message = 1e6;
  const MessageCost cost = MessageCostOf(unit);
  EXPECT_DOUBLE_EQ(cost.Seconds(0), 5e-5);
  EXPECT_DOUBLE_EQ(cost.Seconds(5e5), 6.5e-5);
  EXPECT_DOUBLE_EQ(cost.Seconds(1e6), 8e-5);
  EXPECT_DOUBLE_EQ(cost.Seconds(1e9), 8e-5) << "caches hold no more";
}

// Profiles of earlier versions know one cost only, and a busy machine can make messages in a row look expensive.
TEST(MessageCostTest, IsAlwaysTheSameWhereMessagesInARowAreNotCheaper) {
  for (const Link& link : {Link{"a", "a", 0, 0, 8e-5, 0}, Link{"a", "a", 0, 0, 8e-5, 0, 5e-5, 0},
                           Link{"a", "a", 0, 0, 8e-5, 0, 0, 1e6}, Link{"a", "a", 0, 0, 8e-5, 0, 9e-5, 1e6}}) {
    for (const double bytes : {0.0, 1e3, 1e7}) EXPECT_EQ(MessageCostOf(link).Seconds(bytes), 8e-5);
  }
}

TEST(MessageCostTest, MoreMessagesLeaveLessComputationInBetween) {
  EXPECT_EQ(BytesBetweenMessages(1e6, 16, 0), 0) << "without messages";
  EXPECT_DOUBLE_EQ(BytesBetweenMessages(1e6, 16, 32), 2e6) << "one neighbour: a message out and one in";
  EXPECT_DOUBLE_EQ(BytesBetweenMessages(1e6, 16, 64), 1e6) << "two neighbours";
}

}  // namespace
}  // namespace medley::model
