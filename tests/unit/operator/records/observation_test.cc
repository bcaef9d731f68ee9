#include "operator/records/observation.h"

#include <gtest/gtest.h>

#include <functional>

namespace medley::ops {
namespace {

Observation Training() {
  Observation seen;
  seen.phase = JobPhase::kTraining;
  seen.generation = seen.plan_generation = 2;
  seen.step = 10;
  seen.samples_done = 1000;
  seen.samples_total = 5000;
  seen.throughput = 100;
  seen.stages = {{2, 0.1, 0.01, 200}};
  return seen;
}

Observation With(const std::function<void(Observation&)>& change) {
  Observation seen = Training();
  change(seen);
  return seen;
}

TEST(ObservationTest, TheFirstIsNews) { EXPECT_TRUE(IsNews(nullptr, Training())); }

TEST(ObservationTest, ProgressIsNotNews) {
  const Observation before =
      With([](Observation& o) { o.device_tables = DeviceTables{.place = model::TablePlace::kCache, .used = 10}; });
  EXPECT_FALSE(IsNews(&before, before));
  EXPECT_FALSE(IsNews(&before, With([](Observation& o) {
    o.step = 20;
    o.samples_done = 2000;
    o.loss = 0.3;
    o.throughput = 119;
    o.stages = {{2, 0.2, 0.02, 100}};
    o.usd_spent = 1;
    o.usd_first_plan = 2;
    o.bad_rows = 3;
    o.last_checkpoint_step = 15;
    o.epoch = 2;
    o.embedding_rows = EmbeddingRows{.in_memory = 10, .pulled = 100};
    o.device_tables = DeviceTables{.place = model::TablePlace::kCache, .used = 100, .found = 80};
    o.metrics["auc"] = 0.9;
    o.evaluations.push_back({.step = 20});
    o.best = BestModel{20, 2, "auc", 0.9, true};
  })));
}

TEST(ObservationTest, ChangesThatNeedAReconciliationAreNews) {
  const Observation before = Training();
  const std::function<void(Observation&)> changes[] = {
      [](Observation& o) { o.phase = JobPhase::kRecovering; },
      [](Observation& o) { o.generation = 3; },
      [](Observation& o) { o.next_generation = 3; },
      [](Observation& o) { o.plan_generation = 3; },
      [](Observation& o) { o.samples_total = 6000; },
      [](Observation& o) { o.throughput = 79; },
      [](Observation& o) { o.throughput = 0; },
      [](Observation& o) { o.throughput = 121; },
      [](Observation& o) {
        o.switches.push_back({1, 2, "r", "c", 0.1, false, 0, ""});
      },
      [](Observation& o) { o.missing_members = {"t"}; },
      [](Observation& o) { o.message = "m"; },
      [](Observation& o) { o.restarts = 1; },
      [](Observation& o) { o.retryable = true; },
      [](Observation& o) { o.leader_term = 1; },
  };
  for (size_t i = 0; i < std::size(changes); ++i) EXPECT_TRUE(IsNews(&before, With(changes[i]))) << i;
}

TEST(ObservationTest, TheFirstMeasuredThroughputIsNews) {
  const Observation before = With([](Observation& o) { o.throughput = 0; });
  EXPECT_FALSE(IsNews(&before, before));
  EXPECT_TRUE(IsNews(&before, Training()));
}

}  // namespace
}  // namespace medley::ops
