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
  for (const Sequence::Entry& entry : sequence->entries) {
    program::Instruction instruction = program->instructions[static_cast<size_t>(entry.instruction)];
    instruction.shift = static_cast<uint16_t>(entry.shift);
    text += (text.empty() ? "" : ", ") + program::Text(*program, instruction, names);
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

// d0 computes a alone and half of the rest: its own samples of a are copied.
TEST(SequenceTest, ADeviceMayBeInSeveralLayouts) {
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}};
  plan.placements = {{{{0, 1}}, {{"d0", 1}}, {}}, {{{1, 3}}, {{"d0", 0.5}, {"d1", 0.5}}, program::Allreduce()}};
  EXPECT_EQ(Text(plan, kThree, 0),
            "F a m0, Send a m0, Copy a m0, F b..loss m0, B b..loss m0, AllReduce b..loss, Copy da m0, Receive da m0, "
            "B a m0, Update b..loss, Update a");
  EXPECT_EQ(Text(plan, kThree, 1),
            "Receive a m0, F b..loss m0, B b..loss m0, Send da m0, AllReduce b..loss, Update b..loss");
}

TEST(SequenceTest, ReplicasThatDifferAverage) {
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}};
  plan.placements = {{{{0, 3}}, {{"d0", 0.5}, {"d1", 0.5}}, program::Allreduce()}};
  plan.placements[0].sync.hierarchy = {{{{"d0"}, {"d1"}}, model::AllreduceAlgorithm::kRing}};
  plan.placements[0].sync.mode = model::SyncMode::kNone;
  EXPECT_EQ(Text(plan, kThree, 1), "F a..loss m0, B a..loss m0, AllReduce a..loss, Update a..loss, Average a..loss");
  EXPECT_EQ(Text(StagesPlan({{3, 1}}, 1), kThree, 4), "device 4 does not exist, the program has 1");
}

// The first stage computes steps behind the others. A message is received in the iteration that needs it, not in that
// of its sender.
TEST(SequenceTest, AsynchronousStepsOverlap) {
  const model::ExecutionPlan plan = StagesPlan({{1, 1}, {2, 1}, {3, 1}}, 2, model::ScheduleKind::kAsync1F1B);
  EXPECT_EQ(Text(plan, kThree, 0),
            "F a m0, Send a m0, Receive da m0 -1, B a m0 -1, F a m1, Send a m1, Receive da m1 -1, B a m1 -1, "
            "Update a -1");
  EXPECT_EQ(Text(plan, kThree, 1),
            "Receive a m0, F b m0, Send b m0, Receive db m1 -1, B b m1 -1, Send da m1 -1, Update b -1, Receive a m1, "
            "F b m1, Send b m1, Receive db m0, B b m0, Send da m0");
  EXPECT_EQ(Text(plan, kThree, 2),
            "Receive b m0, F loss m0, B loss m0, Send db m0, Receive b m1, F loss m1, B loss m1, Send db m1");
}

// u2 uses u1, and the top uses u1, u2 and v2: the gradients of u1 are added where it was computed.
TEST(SequenceTest, GradientsOfSeveralConsumersAreAdded) {
  EXPECT_EQ(Text(StagesPlan({{1, 1}, {4, 1}, {6, 1}}, 1), program::TowersModel(), 0),
            "F u1 m0, Send u1 m0, Send u1 m0, Receive du1 m0, Receive du1 m0, Sum du1 m0, B u1 m0, Update u1");
  EXPECT_EQ(Text(StagesPlan({{1, 1}, {4, 1}, {6, 1}}, 1), program::TowersModel(), 2),
            "Receive u1 m0, Receive u2 m0, Receive v2 m0, F top..loss m0, B top..loss m0, Send du1 m0, Send du2 m0, "
            "Send dv2 m0, Update top..loss");
}

}  // namespace
}  // namespace medley::worker
