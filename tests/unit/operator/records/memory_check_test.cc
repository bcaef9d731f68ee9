#include "operator/records/memory_check.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "common/model/profile.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOk;
using kube::Json;
using testing::HasSubstr;

constexpr double kMebibyte = 1 << 20;

class MemoryCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto job = TrainingJob::FromObject(kube::Object(Json::parse(R"({"metadata": {"name": "j"}, "spec": {
      "model": {"name": "mlp"},
      "data": {"train": {"uri": "file:///d.csv", "format": "csv"},
               "schema": {"label": {"column": 3}, "numeric": [0, 1, 2]}},
      "training": {"epochs": 3}}})")));
    ASSERT_THAT(job, IsOk());
    job_ = *job;
    pool_.name = "cpu";
    pool_.unit_resources = {{"cpu", "1"}, {"memory", "512Mi"}};
    pool_.usd_per_unit_hour = 1;
    profile_.profile_batch_size = 64;
    profile_.samples_per_epoch = 1'000'000;
    profile_.state_factor = 3;
    for (const double size : {30.0, 60.0}) {
      model::Layer layer;
      layer.name = "fc" + std::to_string(profile_.model.layers.size());
      layer.weight_bytes = size * kMebibyte;
      layer.output_bytes = 4000;
      layer.profiles = {{.resource_type = "cpu", .compute_seconds = 0.1}};
      profile_.model.layers.push_back(layer);
    }
  }

  static model::ExecutionPlan Plan(const std::vector<int>& ends) {
    model::ExecutionPlan plan;
    int first = 0;
    for (const int end : ends) {
      model::Stage stage;
      stage.operations = {{first, end}};
      stage.groups = {{"cpu", 1, 1}};
      stage.syncs = {{{{first, end}}, {.kind = model::SyncKind::kAllreduce}}};
      plan.stages.push_back(stage);
      first = end;
    }
    plan.schedule = {model::ScheduleKind::kSync1F1B, 1};
    return plan;
  }
  std::vector<PoolOffer> Offers() const { return {{&pool_, 4}}; }

  TrainingJob job_;
  ResourcePool pool_;
  model::Profile profile_;
};

TEST_F(MemoryCheckTest, ReadsTheJobAndTheUnit) {
  const program::ProcessOptions options = ProcessOptionsOf(job_, profile_);
  EXPECT_EQ(options.tensors.samples, 64);
  EXPECT_EQ(options.tensors.state_factor, 3);
  EXPECT_EQ(options.rows, 1e6);
  EXPECT_EQ(options.row_bytes, 16) << "three numbers and a label";
  EXPECT_FALSE(options.torch);
  EXPECT_EQ(UnitMemory(pool_), 512 * kMebibyte);
  pool_.unit_resources.erase("memory");
  EXPECT_EQ(UnitMemory(pool_), 0);
}

// 90 MiB of weights: 5 times as much with a version to undo.
TEST_F(MemoryCheckTest, APlanThatFitsHasNoShortage) {
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), Plan({2})).has_value());
  pool_.unit_resources.erase("memory");
  profile_.model.layers[0].weight_bytes = 1e15;
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), Plan({2})).has_value()) << "a unit without a limit";
}

TEST_F(MemoryCheckTest, SaysWhatIsNeededAndWhatToDo) {
  pool_.unit_resources["memory"] = "256Mi";
  const auto shortage = FindShortage(job_, profile_, Offers(), Plan({2}));
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->reason.constraint, "memory");
  EXPECT_EQ(shortage->reason.resource_type, "cpu");
  EXPECT_EQ(shortage->reason.available, 256 * kMebibyte);
  EXPECT_GT(shortage->reason.needed, 400 * kMebibyte);
  EXPECT_LT(shortage->reason.needed, 600 * kMebibyte);
  EXPECT_THAT(shortage->reason.message, HasSubstr("a trainer of pool cpu needs at least"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("its unit has 256 MiB"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("parameters and optimizer state of fc0..fc1 (270 MiB)"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("raise spec.unit.resources.memory of pool cpu"));
  // The planner counts 3 x 90 MiB for this stage, and not as much for each of two.
  EXPECT_LT(shortage->bound, 270 * kMebibyte);
  EXPECT_GT(shortage->bound, 180 * kMebibyte);
}

TEST_F(MemoryCheckTest, AdviceFollowsFromTheLargestPart) {
  pool_.unit_resources["memory"] = "256Mi";
  profile_.model.layers[0].weight_bytes = profile_.model.layers[1].weight_bytes = 0;
  model::Profile wide = profile_;
  wide.model.layers[0].output_bytes = 100 * kMebibyte;
  EXPECT_THAT(FindShortage(job_, wide, Offers(), Plan({2}))->reason.message, HasSubstr("smaller batch"));
  model::Profile long_data = profile_;
  long_data.samples_per_epoch = 1'000'000'000;
  EXPECT_FALSE(FindShortage(job_, long_data, Offers(), Plan({2})).has_value()) << "the rows of a table are in a file";
  job_.spec["data"] = kube::Json::parse(R"({
      "train": {"uri": "file:///x.npy", "format": "npy", "labels": "file:///y.npy"},
      "inputs": [{"name": "x", "type": "float32", "shape": [3]}]})");
  job_.spec["model"] = kube::Json::parse(R"({"exported": {"uri": "file:///m.pt2"}})");
  EXPECT_FALSE(FindShortage(job_, long_data, Offers(), Plan({2})).has_value()) << "so are those of arrays";
}

TEST_F(MemoryCheckTest, AGpusActivationsAreNotInTheHostsMemory) {
  profile_.model.layers[0].output_bytes = 100 * kMebibyte;
  EXPECT_TRUE(FindShortage(job_, profile_, Offers(), Plan({2})).has_value());
  pool_.cls = model::ResourceClass::kGpu;
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), Plan({2})).has_value());
}

// 90 MiB of weights with Adagrad: the gradient, and weights and state of two versions are 450 MiB.
TEST_F(MemoryCheckTest, AGpusMemoryHoldsTheParameters) {
  pool_.cls = model::ResourceClass::kGpu;
  pool_.unit_resources["memory"] = "128Mi";
  pool_.memory_bytes = 500 * kMebibyte;
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), Plan({2})).has_value()) << "they are not in the host's memory";
  pool_.memory_bytes = 400 * kMebibyte;
  const auto shortage = FindShortage(job_, profile_, Offers(), Plan({2}));
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->reason.constraint, "memory");
  EXPECT_EQ(shortage->reason.available, 400 * kMebibyte);
  EXPECT_THAT(shortage->reason.message, HasSubstr("a trainer of pool cpu needs at least 4"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("of GPU memory, its unit has 400 MiB (spec.memory)"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("parameters and optimizer state of fc0..fc1 (270 MiB)"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("so that stages can divide the model"));
  EXPECT_LT(shortage->bound, 270 * kMebibyte);
  EXPECT_GT(shortage->bound, 180 * kMebibyte);
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), Plan({1, 2})).has_value()) << "a stage of 60 MiB needs 300";
}

TEST_F(MemoryCheckTest, AGpusMemoryHoldsTheActivations) {
  pool_.cls = model::ResourceClass::kGpu;
  pool_.memory_bytes = 2000 * kMebibyte;
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), Plan({2})).has_value());
  profile_.model.layers[0].output_bytes = 100 * kMebibyte;
  const auto shortage = FindShortage(job_, profile_, Offers(), Plan({2}));
  ASSERT_TRUE(shortage.has_value());
  EXPECT_THAT(shortage->reason.message, HasSubstr("smaller batch"));
}

// A table of 400 MiB with Adagrad has 800 MiB on the GPU. The planner is asked again with less than it counted.
TEST_F(MemoryCheckTest, AGpusMemoryHoldsItsTables) {
  pool_.cls = model::ResourceClass::kGpu;
  pool_.unit_resources.erase("memory");
  pool_.memory_bytes = 1000 * kMebibyte;
  model::Layer& table = profile_.model.layers[0];
  table.sparse = true;
  table.weight_bytes = 400 * kMebibyte;
  table.profiles = {{.resource_type = "cpu", .server_seconds = 1}};
  model::ExecutionPlan plan = Plan({2});
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), plan).has_value()) << "the plan has the tables elsewhere";
  plan.stages[0].tables.place = model::TablePlace::kDevice;
  const auto shortage = FindShortage(job_, profile_, Offers(), plan);
  ASSERT_TRUE(shortage.has_value());
  EXPECT_THAT(shortage->reason.message, HasSubstr("tables (800 MiB)"));
  EXPECT_GT(shortage->bound, 1.2 * 800 * kMebibyte);
  plan.stages[0].tables = {.place = model::TablePlace::kCache, .cache_bytes = 100 << 20};
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), plan).has_value());
}

TEST_F(MemoryCheckTest, TheMemoryOfAGpuBoundsThePlanner) {
  pool_.cls = model::ResourceClass::kGpu;
  pool_.memory_bytes = 4000 * kMebibyte;
  model::PlanRequest request;
  request.resources = {{"cpu", model::ResourceClass::kGpu, 1, 4, 4000 * kMebibyte}};
  LimitByUnitMemory(job_, profile_, Offers(), request);
  EXPECT_EQ(request.resources[0].memory_bytes, 4000 * kMebibyte) << "the unit's 512 MiB are the host's";
}

TEST_F(MemoryCheckTest, BoundsThePlanner) {
  model::PlanRequest request;
  request.resources = {{"cpu", model::ResourceClass::kCpu, 1, 4, 0}};
  request.server_type = "cpu";
  LimitByUnitMemory(job_, profile_, Offers(), request);
  // What fits has the program and 16 MB of rows beside it; the pages of the program's file do not count.
  EXPECT_GT(request.resources[0].memory_bytes, 450 * kMebibyte);
  EXPECT_LT(request.resources[0].memory_bytes, 580 * kMebibyte);
  EXPECT_EQ(request.server_memory_bytes, 0) << "no table";
  request.resources[0].memory_bytes = 100 * kMebibyte;  // of the device
  LimitByUnitMemory(job_, profile_, Offers(), request);
  EXPECT_EQ(request.resources[0].memory_bytes, 100 * kMebibyte);
  pool_.unit_resources.erase("memory");
  request.resources[0].memory_bytes = 0;
  LimitByUnitMemory(job_, profile_, Offers(), request);
  EXPECT_EQ(request.resources[0].memory_bytes, 0);
}

// A trainer that keeps the rows needs their memory too; servers, or a smaller bound for the planner, are the way out.
TEST_F(MemoryCheckTest, RowsInATrainerCountInItsUnit) {
  model::Layer& table = profile_.model.layers[0];
  table.sparse = true;
  table.weight_bytes = 4.0 * 16 * 4e6;
  table.attributes = {{"rows", "4000000"}, {"dim", "16"}, {"fields", "1"}, {program::kUsedRows, "4000000"}};
  table.profiles[0].server_seconds = 0.01;
  profile_.model.layers[1].weight_bytes = kMebibyte;
  model::ExecutionPlan plan = Plan({2});
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}},
                          {{{1, 2}}, {.kind = model::SyncKind::kAllreduce}}};
  plan.servers = model::Servers{"cpu", 2};
  EXPECT_FALSE(FindShortage(job_, profile_, Offers(), plan).has_value()) << "half of 600 MiB on each server";
  plan.servers = model::Servers{"", 1, true};
  const auto shortage = FindShortage(job_, profile_, Offers(), plan);
  ASSERT_TRUE(shortage.has_value());
  EXPECT_FALSE(shortage->server);
  EXPECT_THAT(shortage->reason.message, HasSubstr("a trainer of pool cpu needs at least"));
  EXPECT_THAT(shortage->reason.message, HasSubstr("so that parameter servers keep the rows"));
  EXPECT_LT(shortage->bound, table.weight_bytes * profile_.state_factor + 3 * kMebibyte);
  EXPECT_GT(shortage->bound, table.weight_bytes) << "as the planner counts it for plans with rows in trainers";
}

// A table of many times a unit's memory, on one server or in one trainer: with a budget what is in memory fits.
TEST_F(MemoryCheckTest, ABudgetForRowsIsWhatTheyNeed) {
  model::Layer& table = profile_.model.layers[0];
  table.sparse = true;
  table.weight_bytes = 4.0 * 16 * 1e8;
  table.attributes = {{"rows", "100000000"}, {"dim", "16"}, {"fields", "1"}, {program::kUsedRows, "50000000"}};
  table.profiles[0].server_seconds = 0.01;
  profile_.model.layers[1].weight_bytes = kMebibyte;
  model::ExecutionPlan plan = Plan({2});
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}},
                          {{{1, 2}}, {.kind = model::SyncKind::kAllreduce}}};
  const model::Servers places[] = {{"cpu", 1}, {"", 1, true}};
  for (const model::Servers& servers : places) {
    plan.servers = servers;
    job_.spec["training"].erase("embeddings");
    const auto shortage = FindShortage(job_, profile_, Offers(), plan);
    ASSERT_TRUE(shortage.has_value());
    EXPECT_THAT(shortage->reason.message, HasSubstr("spec.training.embeddings.memoryBudget"));
    job_.spec["training"]["embeddings"]["memoryBudget"] = "256Mi";
    EXPECT_FALSE(FindShortage(job_, profile_, Offers(), plan).has_value());
    job_.spec["training"]["embeddings"]["memoryBudget"] = "1Gi";
    const auto higher = FindShortage(job_, profile_, Offers(), plan);
    ASSERT_TRUE(higher.has_value());
    EXPECT_THAT(higher->reason.message, HasSubstr("lower spec.training.embeddings.memoryBudget"));
    EXPECT_THAT(higher->reason.message, HasSubstr("rows in memory"));
  }
  job_.spec["training"]["embeddings"]["memoryBudget"] = "256Mi";
  model::PlanRequest request;
  request.model = profile_.model;
  request.resources = {{"cpu", model::ResourceClass::kCpu, 1, 4, 0}};
  request.server_type = "cpu";
  LimitByUnitMemory(job_, profile_, Offers(), request);
  EXPECT_EQ(request.server_memory_bytes, 0) << "one server is enough";
  EXPECT_NEAR(request.model.layers[0].weight_bytes * profile_.state_factor, 256 * kMebibyte, 1);
  EXPECT_EQ(request.model.layers[1].weight_bytes, kMebibyte);
}

TEST_F(MemoryCheckTest, MoreServersWhereTablesAreLarge) {
  model::Layer& table = profile_.model.layers[0];
  table.sparse = true;
  table.weight_bytes = 4.0 * 16 * 1e8;
  table.attributes = {{"rows", "100000000"}, {"dim", "16"}, {"fields", "1"}};
  model::PlanRequest request;
  request.resources = {{"cpu", model::ResourceClass::kCpu, 1, 4, 0}};
  request.server_type = "cpu";
  LimitByUnitMemory(job_, profile_, Offers(), request);
  EXPECT_EQ(request.server_memory_bytes, 0) << "nobody knows how many rows are used";
  table.attributes[program::kUsedRows] = "10000000";  // of 160 bytes with their entries: 1.5 GiB
  LimitByUnitMemory(job_, profile_, Offers(), request);
  const double servers = table.weight_bytes * profile_.state_factor / request.server_memory_bytes;
  EXPECT_GT(servers, 2);
  EXPECT_LT(servers, 4);
}

}  // namespace
}  // namespace medley::ops
