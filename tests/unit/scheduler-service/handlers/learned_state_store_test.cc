#include "scheduler-service/handlers/learned_state_store.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/observation.h"
#include "common/model/planning.h"

namespace medley::sched {
namespace {

class LearnedStateStoreTest : public testing::Test {
 protected:
  void TearDown() override { base::RemoveTempDir(folder_); }

  const std::filesystem::path folder_ = *base::MakeTempDir("medley-learned-test");
  metrics::Registry metrics_;
};

TEST_F(LearnedStateStoreTest, DamagedStateFilesAreIgnored) {
  const StateFiles files(folder_ / "deep" / "state", metrics_);
  ASSERT_THAT(files.Open(), base::IsOk());
  EXPECT_EQ(files.Load("x"), std::nullopt);
  const std::string bytes("a\n\0b", 4);
  files.Save("x", bytes);
  EXPECT_EQ(files.Load("x"), bytes);
  const auto path = folder_ / "deep" / "state" / "x";
  const std::string whole = *base::ReadFile(path);
  const std::string cut = whole.substr(0, whole.size() - 1);
  for (const std::string& damaged : {cut, whole + "x", std::string(), std::string("other")}) {
    ASSERT_THAT(base::WriteFileAtomic(path, damaged), base::IsOk());
    EXPECT_EQ(files.Load("x"), std::nullopt);
  }
  EXPECT_THAT(metrics_.Text(), testing::HasSubstr("medley_state_damaged_total{file=\"x\"} 4"));
}

TEST_F(LearnedStateStoreTest, WithoutAFolderNothingIsSaved) {
  const StateFiles files("", metrics_);
  EXPECT_THAT(files.Open(), base::IsOk());
  files.Save("x", "y");
  EXPECT_EQ(files.Load("x"), std::nullopt);
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "file", ""), base::IsOk());
  LearnedStateStore in_a_file(folder_ / "file", false, metrics_);
  EXPECT_FALSE(in_a_file.Open().ok());
}

TEST_F(LearnedStateStoreTest, PolicyFilesAreAddedChangedAndRemoved) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "a.policy", "one"), base::IsOk());
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "b.txt", "no policy"), base::IsOk());
  PolicyStore store(folder_);
  store.Scan();
  EXPECT_EQ(store.Names(), "a");
  ASSERT_NE(store.Find("a"), nullptr);
  EXPECT_EQ(*store.Find("a"), "one");
  EXPECT_EQ(store.Find("b"), nullptr);
  const uint64_t before = store.version();
  store.Scan();
  EXPECT_EQ(store.version(), before);
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "a.policy", "another"), base::IsOk());
  store.Scan();
  EXPECT_EQ(*store.Find("a"), "another");
  EXPECT_GT(store.version(), before);
  std::filesystem::remove(folder_ / "a.policy");
  store.Scan();
  EXPECT_EQ(store.Find("a"), nullptr);
  EXPECT_EQ(store.Names(), "none");
}

model::JobObservation Observed() {
  model::JobObservation observation;
  model::Layer& layer = observation.request.model.layers.emplace_back();
  layer.name = "fc";
  layer.profiles = {{.resource_type = "cpu", .compute_seconds = 1, .compute_parallel = 1, .origin = "measured"}};
  observation.request.resources = {{"cpu", model::ResourceClass::kCpu, 0.1, 4}};
  observation.request.training.profile_batch_size = 64;
  observation.request.training.samples_per_epoch = 1000;
  observation.stages = {{0, 0, "cpu", 1, 1, 0}};
  observation.throughput = 64;
  observation.batch_size = 64;
  observation.job_uid = "job";
  return observation;
}

TEST_F(LearnedStateStoreTest, SaysWhyAnObservationTrainsNoPolicy) {
  std::vector<std::string> lines;
  const base::log::Copy copy([&](std::string_view line) { lines.emplace_back(line); });
  LearnedStateStore store("", true, metrics_);
  const auto refusal = [&](const model::JobObservation& observation) {
    const auto learned = store.Observe(observation, "");
    EXPECT_THAT(learned, base::IsOk());
    EXPECT_EQ(learned->refusal.empty(), learned->message.empty());
    return learned->refusal;
  };
  EXPECT_EQ(refusal(Observed()), "");
  model::JobObservation observation = Observed();
  observation.request.resources.clear();
  EXPECT_EQ(refusal(observation), "no_resources");
  EXPECT_EQ(refusal(observation), "no_resources");
  observation = Observed();
  observation.request.resources[0].price_per_unit_hour = 0;
  EXPECT_EQ(refusal(observation), "no_price");
  observation = Observed();
  observation.request.resources[0].name = "another";
  EXPECT_EQ(refusal(observation), "unknown_type");
  observation = Observed();
  observation.request.constraints.min_throughput = -1;
  EXPECT_EQ(refusal(observation), "invalid");
  observation = Observed();
  observation.request.model.layers.resize(1025, observation.request.model.layers[0]);
  for (size_t i = 0; i < observation.request.model.layers.size(); ++i) {
    observation.request.model.layers[i].name = std::to_string(i);
  }
  observation.stages[0].last_layer = 1024;
  EXPECT_EQ(refusal(observation), "too_many_layers");
  const std::string metrics = metrics_.Text();
  EXPECT_THAT(metrics, testing::HasSubstr("medley_policy_training_rejections_total{reason=\"no_resources\"} 2"));
  for (const char* reason : {"no_price", "unknown_type", "invalid", "too_many_layers"}) {
    EXPECT_THAT(metrics,
                testing::HasSubstr(fmt::format("medley_policy_training_rejections_total{{reason=\"{}\"}} 1", reason)));
  }
  EXPECT_THAT(metrics, testing::HasSubstr("medley_policy_training_observations_total{result=\"rejected\"} 6"));
  EXPECT_EQ(
      std::ranges::count_if(lines, [](const std::string& line) { return line.find("no_resources") != line.npos; }), 1)
      << "one warning for each reason";
}

TEST_F(LearnedStateStoreTest, WithoutLearningTheAnswerSaysSo) {
  LearnedStateStore store("", false, metrics_);
  const auto learned = store.Observe(Observed(), "");
  ASSERT_THAT(learned, base::IsOk());
  EXPECT_EQ(learned->refusal, "disabled");
  EXPECT_THAT(learned->message, testing::HasSubstr("--learn-online"));
}

// HeterPS trains its policy while jobs run: the planner goes on with what was learned.
TEST_F(LearnedStateStoreTest, RlLstmGoesOnWithTheOnlinePolicy) {
  LearnedStateStore store("", true, metrics_);
  base::SystemClock clock;
  std::jthread training([&](std::stop_token stop) { store.Run(clock, std::move(stop)); });
  ASSERT_THAT(store.Observe(Observed(), "mine"), base::IsOk());
  const base::SteadyTime end = clock.Steady() + base::seconds(100);
  const char* trained = "medley_policy_training_observations_total{result=\"trained\"} 1";
  while (metrics_.Text().find(trained) == std::string::npos && clock.Steady() < end) {
    clock.SleepUntil(clock.Steady() + base::milliseconds(10), {});
  }
  const auto policy_for = [&](auto change, const char* tenant) {
    model::PlanRequest request = Observed().request;
    request.planner.name = "rl-lstm";
    change(request);
    EXPECT_THAT(store.ResolvePolicy(request, tenant), base::IsOk());
    return request.planner.policy.trained;
  };
  EXPECT_NE(policy_for([](auto&) {}, "mine"), "");
  EXPECT_EQ(policy_for([](auto&) {}, "another"), "");
  EXPECT_EQ(policy_for([](auto& r) { r.planner.name = "exact"; }, "mine"), "");
  EXPECT_EQ(policy_for([](auto& r) { r.planner.options["rounds"] = 3.0; }, "mine"), "");
  EXPECT_EQ(policy_for([](auto& r) { r.resources.push_back({"new", model::ResourceClass::kGpu, 1, 1}); }, "mine"), "");
}

}  // namespace
}  // namespace medley::sched
