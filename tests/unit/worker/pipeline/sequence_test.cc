// The order in which one device works, of programs of which the compiler's tests show the lists.
#include "worker/pipeline/sequence.h"

#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "common/program/text.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::worker {
namespace {

using program::Dense;
using program::StagesPlan;

std::string Text(const model::ExecutionPlan& plan, const model::Model& model, int device) {
  const auto program = program::Compile(plan, model);
  if (!program.ok()) return base::ToString(program.status());
  const auto sequence = SequenceOf(*program, device);
  if (!sequence.ok()) return std::string(sequence.status().message());
  std::vector<std::string> names;
  for (const model::Layer& layer : model.layers) names.push_back(layer.name);
  std::string text;
  for (const int i : sequence->instructions) {
    text += (text.empty() ? "" : ", ") + program::Text(*program, program->instructions[static_cast<size_t>(i)], names);
  }
  return text;
}

const model::Model kThree{"three", {Dense("a"), Dense("b"), Dense("loss", 0)}};

TEST(SequenceTest, MessagesAreWaitedForWhenNeededAndSentAtOnce) {
  EXPECT_EQ(Text(StagesPlan({{1, 1}, {2, 1}, {3, 1}}, 2), kThree, 1),
            "Receive a m0, F b m0, Send b m0, Receive a m1, F b m1, Send b m1, Receive db m0, B b m0, Send da m0, "
            "Receive db m1, B b m1, Send da m1, Update b");
}

TEST(SequenceTest, ReductionsStartWhenTheirGradientsAreComplete) {
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 1);
  plan.schedule.bucket_bytes = 1;
  EXPECT_EQ(Text(plan, kThree, 1),
            "F a m0, F b..loss m0, B b..loss m0, AllReduce b..loss, B a m0, AllReduce a, Update b..loss, Update a");
}

TEST(SequenceTest, RowsArePushedWhenTheirGradientsAreComplete) {
  model::ExecutionPlan plan = StagesPlan({{2, 2}, {4, 1}}, 1);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 2}}, program::Allreduce()}};
  plan.servers = model::Servers{"cpu", 1};
  EXPECT_EQ(Text(plan, program::ChainModel(), 0),
            "F emb m0, F a m0, Send a m0, Receive da m0, B a m0, AllReduce a, B emb m0, PushRows emb, Update a");
}

TEST(SequenceTest, RefusesWhatTheExecutorCannotRun) {
  EXPECT_EQ(Text(StagesPlan({{1, 1}, {3, 1}}, 1, model::ScheduleKind::kAsync1F1B), kThree, 0),
            "plan.schedule.kind: this runtime executes only synchronous schedules, not ASYNC_1F1B");
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}};
  plan.placements = {{{{0, 1}}, {{"d0", 1}}, {}}, {{{1, 3}}, {{"d0", 0.5}, {"d1", 0.5}}, program::Allreduce()}};
  EXPECT_EQ(Text(plan, kThree, 0), "d0: this runtime executes blocks of one layout on a device");
  plan.placements = {{{{0, 3}}, {{"d0", 0.5}, {"d1", 0.5}}, program::Allreduce()}};
  plan.placements[0].sync.hierarchy = {{{{"d0"}, {"d1"}}, model::AllreduceAlgorithm::kRing}};
  plan.placements[0].sync.mode = model::SyncMode::kNone;
  EXPECT_EQ(Text(plan, kThree, 1), "d1: this runtime synchronises all replicas in every step");
  EXPECT_EQ(Text(StagesPlan({{3, 1}}, 1), kThree, 4), "device 4 does not exist, the program has 1");
  EXPECT_EQ(Text(StagesPlan({{2, 1}, {4, 1}, {6, 1}}, 1), program::TowersModel(), 2),
            "p2/0: this runtime executes blocks with one input and one output");
}

}  // namespace
}  // namespace medley::worker
