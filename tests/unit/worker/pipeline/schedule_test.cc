#include "worker/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace medley::worker {
namespace {

std::string Text(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) {
    text += (action.kind == Action::Kind::kForward ? "F" : "B") + std::to_string(action.micro) + " ";
  }
  return text;
}

TEST(ScheduleTest, OneForwardOneBackward) {
  using enum model::ScheduleKind;
  EXPECT_EQ(Text(StageActions(kSync1F1B, 0, 3, 4)), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(Text(StageActions(kSync1F1B, 1, 3, 4)), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(Text(StageActions(kSync1F1B, 2, 3, 4)), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_EQ(Text(StageActions(kSync1F1B, 0, 4, 2)), "F0 F1 B0 B1 ");
  EXPECT_EQ(Text(StageActions(kGpipe, 1, 2, 3)), "F0 F1 F2 B0 B1 B2 ");
}

// Every stage runs each forward and backward pass once, in order, with at most n - i micro-batches in flight; and the
// stages together have no deadlock.
TEST(ScheduleTest, IsCompleteBoundedAndFreeOfDeadlock) {
  for (int stages = 1; stages <= 5; ++stages) {
    for (int micros = 1; micros <= 9; ++micros) {
      std::vector<std::vector<Action>> actions;
      for (int i = 0; i < stages; ++i) {
        actions.push_back(StageActions(model::ScheduleKind::kSync1F1B, i, stages, micros));
        ASSERT_EQ(actions.back().size(), static_cast<size_t>(2 * micros));
      }
      std::vector<size_t> at(static_cast<size_t>(stages));
      std::vector<int> forwards(at.size());
      std::vector<int> backwards(at.size());
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < at.size(); ++i) {
          if (at[i] == actions[i].size()) continue;
          const Action action = actions[i][at[i]];
          const bool forward = action.kind == Action::Kind::kForward;
          ASSERT_EQ(action.micro, forward ? forwards[i] : backwards[i]);
          if (forward && i > 0 && forwards[i - 1] <= action.micro) continue;
          if (!forward && i + 1 < at.size() && backwards[i + 1] <= action.micro) continue;
          ++(forward ? forwards[i] : backwards[i]);
          ASSERT_LE(forwards[i] - backwards[i], stages - static_cast<int>(i));
          ++at[i];
          moved = true;
        }
      }
      for (size_t i = 0; i < at.size(); ++i) ASSERT_EQ(at[i], actions[i].size()) << "stage " << i << " is stuck";
    }
  }
}

}  // namespace
}  // namespace medley::worker
