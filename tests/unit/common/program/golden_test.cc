// Compares the text and the hash of programs with tests/golden/program/*.txt: a change of what plans mean must be seen,
// because members of a job compare hashes. With MEDLEY_GOLDEN_UPDATE=1 the test writes these files; review the
// difference.
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "common/program/text.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::program {
namespace {

using model::ScheduleKind;

void ExpectGolden(const std::string& name, const absl::StatusOr<Program>& program, const model::Model& model) {
  ASSERT_THAT(program, base::IsOk());
  std::vector<std::string> names;
  for (const model::Layer& layer : model.layers) names.push_back(layer.name);
  const std::string text = "program " + Hash(*program) + "\n" + Text(*program, names);
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  const std::string path = std::string(source == nullptr ? "." : source) + "/tests/golden/program/" + name + ".txt";
  if (std::getenv("MEDLEY_GOLDEN_UPDATE") != nullptr) {
    ASSERT_THAT(base::WriteFileAtomic(path, text), base::IsOk());
  }
  const auto golden = base::ReadFile(path);
  ASSERT_THAT(golden, base::IsOk());
  EXPECT_EQ(text, *golden) << name;
}

// Rows on two servers, two replicas of the first stage, one of the second.
model::ExecutionPlan Pipeline(ScheduleKind kind) {
  model::ExecutionPlan plan = StagesPlan({{2, 2}, {4, 1}}, 3, kind);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 2}}, Allreduce()}};
  plan.servers = model::Servers{"cpu", 2};
  return plan;
}

TEST(GoldenTest, Sync1F1B) {
  ExpectGolden("sync_1f1b", Compile(Pipeline(ScheduleKind::kSync1F1B), ChainModel()), ChainModel());
}

TEST(GoldenTest, GPipe) { ExpectGolden("gpipe", Compile(Pipeline(ScheduleKind::kGpipe), ChainModel()), ChainModel()); }

TEST(GoldenTest, Evaluation) {
  ExpectGolden("evaluation", CompileEvaluation(Pipeline(ScheduleKind::kSync1F1B), ChainModel()), ChainModel());
}

TEST(GoldenTest, Async1F1B) {
  const model::Model model{"three", {Dense("a"), Dense("b"), Dense("loss", 0)}};
  const model::ExecutionPlan plan = StagesPlan({{1, 2}, {2, 1}, {3, 1}}, 2, ScheduleKind::kAsync1F1B);
  ExpectGolden("async_1f1b", Compile(plan, model), model);
}

model::ExecutionPlan Towers() {
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}, {"d2", "cpu", "", ""}};
  plan.placements = {{{{0, 1}}, {{"d0", 1}}, {}},
                     {{{1, 2}}, {{"d1", 1}}, {}},
                     {{{2, 4}}, {{"d2", 1}}, {}},
                     {{{4, 6}}, {{"d0", 0.5}, {"d1", 0.5}}, Allreduce()}};
  plan.schedule = {ScheduleKind::kSync1F1B, 2};
  return plan;
}

TEST(GoldenTest, TowersOnThreeDevices) { ExpectGolden("towers", Compile(Towers(), TowersModel()), TowersModel()); }

TEST(GoldenTest, TowersInAnOrder) {
  model::ExecutionPlan plan = Towers();
  for (const auto phase : {model::Phase::kForward, model::Phase::kBackward, model::Phase::kReduce}) {
    for (const int op : {2, 3, 0, 1, 4, 5}) plan.order.push_back({op, phase});
  }
  ExpectGolden("towers_ordered", Compile(plan, TowersModel()), TowersModel());
}

TEST(GoldenTest, ReplicasThatDiffer) {
  const model::Model model{"three", {Dense("a"), Dense("b"), Dense("loss", 0)}};
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}, {"d2", "cpu", "", ""}};
  model::Sync sync = Allreduce(model::AllreduceAlgorithm::kLinear);
  sync.mode = model::SyncMode::kPercentage;
  sync.fraction = 0.5;
  sync.hierarchy = {{{{"d0", "d2"}, {"d1"}}, model::AllreduceAlgorithm::kRing}};
  plan.placements = {{{{0, 3}}, {{"d0", 0.5}, {"d1", 0.25}, {"d2", 0.25}}, sync}};
  ExpectGolden("percentage", Compile(plan, model), model);
}

}  // namespace
}  // namespace medley::program
