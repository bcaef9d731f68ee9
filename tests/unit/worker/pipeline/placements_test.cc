// The loss curve must not depend on the placement: any operations on any devices, in any order, as one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/device.h"
#include "common/model/execution_plan.h"
#include "common/model/order_entry.h"
#include "tests/unit/worker/pipeline/pipeline_harness.h"

namespace medley::worker::testing {
namespace {

model::JobSpec Job(const std::string& name) {
  model::JobSpec job = AdultJob();
  job.model.name = name;
  job.model.embedding_rows = 1024;
  job.model.embedding_dim = 4;
  job.model.hidden = name == "residual" ? std::vector<int>{16, 16, 16, 8, 16} : std::vector<int>{16, 8};
  job.training.batch_size = 96;
  return job;
}

// Operations in random placements: some in the layout of the one before, some in any other.
class RandomPlacements {
 public:
  explicit RandomPlacements(uint64_t seed) : random_(seed) {}

  model::ExecutionPlan Make(const Graph& graph) {
    model::ExecutionPlan plan;
    const int devices = 2 + Below(3), layouts = 2 + Below(3);
    for (int d = 0; d < devices; ++d) plan.devices.push_back({Id(d), "cpu", "", ""});
    for (int l = 0; l < layouts; ++l) plan.placements.push_back(MakeLayout(devices));
    const int operations = static_cast<int>(graph.operations.size());
    size_t at = 0;
    bool served = false;
    for (int i = 0; i < operations; ++i) {
      if (i == 0 || Below(10) < 6) at = static_cast<size_t>(Below(layouts));
      plan.placements[at].operations.push_back({i, i + 1});
      const auto& parameters = graph.operations[static_cast<size_t>(i)].parameters;
      const bool table = std::ranges::any_of(parameters, [](const auto& parameter) { return parameter.sparse; });
      served |= table && plan.placements[at].replicas.size() > 1;
    }
    std::erase_if(plan.placements, [](const model::Placement& placement) { return placement.operations.empty(); });
    std::set<std::string> used;
    for (const model::Placement& placement : plan.placements) {
      for (const model::Replica& replica : placement.replicas) used.insert(replica.device);
    }
    std::erase_if(plan.devices, [&](const model::Device& device) { return !used.contains(device.id); });
    if (served) plan.servers = model::Servers{"servers", 1};
    plan.schedule.kind = Below(2) == 0 ? model::ScheduleKind::kGpipe : model::ScheduleKind::kSync1F1B;
    plan.schedule.micro_batches = 1 + Below(4);
    plan.schedule.bucket_bytes = Below(3) * 600;
    if (Below(3) == 0) AddOrder(plan, operations);
    return plan;
  }

 private:
  static std::string Id(int device) { return "d" + std::to_string(device); }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  model::Placement MakeLayout(int devices) {
    model::Placement placement;
    std::vector<int> ids;
    for (int d = 0; d < devices; ++d) ids.push_back(d);
    std::ranges::shuffle(ids, random_);
    ids.resize(static_cast<size_t>(1 + Below(devices)));
    double sum = 0;
    for (const int d : ids) {
      placement.replicas.push_back({Id(d), 1.0 + Below(4)});
      sum += placement.replicas.back().share;
    }
    for (model::Replica& replica : placement.replicas) replica.share /= sum;
    placement.sync.kind = model::SyncKind::kAllreduce;
    placement.sync.algorithm = model::AllreduceAlgorithm::kAuto;
    if (Below(3) == 0) {
      placement.sync.algorithm = model::AllreduceAlgorithm::kCentralized;
      placement.sync.root = placement.replicas.front().device;
    }
    return placement;
  }

  void AddOrder(model::ExecutionPlan& plan, int operations) {
    for (int i = 0; i < operations; ++i) {
      for (const auto phase : {model::Phase::kForward, model::Phase::kBackward, model::Phase::kReduce}) {
        plan.order.push_back({i, phase});
      }
    }
    std::ranges::shuffle(plan.order, random_);
  }

  std::mt19937_64 random_;
};

class PlacementsTest : public ::testing::TestWithParam<std::string> {};

// MEDLEY_PLACEMENT_INSTANCES sets the number of plans for each model.
TEST_P(PlacementsTest, EqualOneProcess) {
  constexpr int64_t kSteps = 30;
  const char* set = std::getenv("MEDLEY_PLACEMENT_INSTANCES");
  const uint64_t instances = set == nullptr ? 25 : std::strtoull(set, nullptr, 10);
  const model::JobSpec job = Job(GetParam());
  const std::shared_ptr<const Dataset> data =
      *Dataset::Load(job.data.train, job.data, nullptr, {.embedding_rows = job.model.embedding_rows});
  const Graph graph = *BuildGraph(job);
  const int operations = static_cast<int>(graph.operations.size());
  const auto expected = Train(job, {{{0, operations}}, {{1.0}}}, *data, data.get(), kSteps);
  ASSERT_TRUE(expected.ok()) << base::ToString(expected.status());
  for (uint64_t seed = 1; seed <= instances; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const model::ExecutionPlan plan = RandomPlacements(seed).Make(graph);
    const auto outcome = Train(job, plan, {}, *data, data.get(), kSteps);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    ASSERT_EQ(outcome->losses.size(), expected->losses.size());
    for (size_t i = 0; i < expected->losses.size(); ++i) {
      ASSERT_NEAR(outcome->losses[i] / expected->losses[i], 1, 1e-4) << "step " << i + 1;
    }
    ASSERT_NEAR(outcome->auc, expected->auc, 1e-4);
    ASSERT_NEAR(outcome->log_loss / expected->log_loss, 1, 1e-4);
  }
}

// A step may begin before the reductions of the one before have ended. What is computed is the same, bit for bit.
TEST(NextStepPlacementsTest, EqualUpdatesAtTheEnd) {
  constexpr int64_t kSteps = 30;
  model::JobSpec job = Job("mlp");
  job.data.schema.categorical.clear();
  job.data.schema.numeric_buckets = 0;
  const std::shared_ptr<const Dataset> data = *Dataset::Load(job.data.train, job.data, nullptr, {});
  const Graph graph = *BuildGraph(job);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    model::ExecutionPlan plan = RandomPlacements(seed).Make(graph);
    const auto expected = Train(job, plan, {}, *data, data.get(), kSteps);
    ASSERT_TRUE(expected.ok()) << base::ToString(expected.status());
    plan.schedule.overlap_next_step = true;
    const auto outcome = Train(job, plan, {.drains = {static_cast<int64_t>(seed % 30)}}, *data, data.get(), kSteps);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    ASSERT_EQ(outcome->losses, expected->losses);
    ASSERT_EQ(outcome->auc, expected->auc);
    ASSERT_EQ(outcome->log_loss, expected->log_loss);
  }
}

// The norm is over the gradients of all devices, so placements clip alike.
TEST(ClippedPlacementsTest, EqualOneProcess) {
  constexpr int64_t kSteps = 30;
  model::JobSpec job = Job("mlp");
  job.data.schema.categorical.clear();
  job.data.schema.numeric_buckets = 0;
  job.training.optimizer = "sgd";
  job.training.learning_rate = 0.5;
  const std::shared_ptr<const Dataset> data = *Dataset::Load(job.data.train, job.data, nullptr, {});
  const int operations = static_cast<int>(BuildGraph(job)->operations.size());
  const auto free = Train(job, {{{0, operations}}, {{1.0}}}, *data, data.get(), kSteps);
  job.training.clip_norm = 0.05;
  const Graph graph = *BuildGraph(job);
  const auto expected = Train(job, {{{0, operations}}, {{1.0}}}, *data, data.get(), kSteps);
  ASSERT_TRUE(free.ok() && expected.ok()) << base::ToString(expected.status());
  ASSERT_GT(std::abs(expected->losses.back() / free->losses.back() - 1), 0.01) << "nothing was clipped";
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto outcome = Train(job, RandomPlacements(seed).Make(graph), {}, *data, data.get(), kSteps);
    ASSERT_TRUE(outcome.ok()) << base::ToString(outcome.status());
    for (size_t i = 0; i < expected->losses.size(); ++i) {
      ASSERT_NEAR(outcome->losses[i] / expected->losses[i], 1, 1e-4) << "step " << i + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PlacementsTest, ::testing::Values("ctrdnn", "residual", "two-tower"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace medley::worker::testing
