// Schedules that name a type for each layer, and where runs of one type are cut.
#include "scheduler-service/planner/schedule_names.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::sched::schedule_names_test {
namespace {

using testing::HasSubstr;

Problem FiveLayers() {
  model::PlanRequest request;
  for (int l = 0; l < 5; ++l) {
    model::Layer& layer = request.model.layers.emplace_back();
    layer.name = fmt::format("l{}", l);
    for (const char* type : {"a", "b"}) layer.profiles.push_back({.resource_type = type, .compute_seconds = 1});
  }
  request.training = {.profile_batch_size = 64, .samples_per_epoch = 1000};
  for (const char* type : {"a", "b"}) {
    request.resources.push_back({.name = type, .price_per_unit_hour = 1, .limit = 4});
  }
  return Problem::Compile(request).value();
}

const std::vector<std::string> kSchedule = {"a", "a", "a", "b", "b"};

TEST(ScheduleNamesTest, CutsDivideRuns) {
  const Problem problem = FiveLayers();
  const auto read = [&](const std::vector<int>& cuts) { return ReadSchedule(problem, kSchedule, cuts).value(); };
  using Stages = std::vector<StageChoice>;
  EXPECT_EQ(read({}), (Stages{{0, 2, 0, 0}, {3, 4, 1, 0}}));
  EXPECT_EQ(read({1}), (Stages{{0, 0, 0, 0}, {1, 2, 0, 0}, {3, 4, 1, 0}}));
  EXPECT_EQ(read({1, 2, 4}), (Stages{{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 0}, {3, 3, 1, 0}, {4, 4, 1, 0}}));
}

// A layer that cannot be a cut is refused with its place in the list.
TEST(ScheduleNamesTest, RefusesOtherCuts) {
  const Problem problem = FiveLayers();
  const auto refused = [&](const std::vector<int>& cuts, std::string_view what) {
    EXPECT_THAT(ReadSchedule(problem, kSchedule, cuts),
                base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(what))));
  };
  refused({0}, "cuts[0]");  // the first layer begins a stage anyhow
  refused({-1}, "cuts[0]");
  refused({3}, "cuts[0]");  // the type changes here
  refused({1, 3}, "cuts[1]");
  refused({5}, "cuts[0]");     // no layer
  refused({2, 1}, "cuts[1]");  // not ascending
  refused({1, 1}, "cuts[1]");
  refused({4, 1}, "cuts[1]");
}

}  // namespace
}  // namespace medley::sched::schedule_names_test
