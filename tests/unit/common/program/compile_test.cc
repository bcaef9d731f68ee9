// What small plans compile to, list by list.
#include "common/program/compile.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/program/text.h"
#include "tests/unit/common/program/sample_models.h"

namespace medley::program {
namespace {

using base::IsOk;
using base::StatusIs;
using model::ScheduleKind;
using testing::HasSubstr;

std::vector<std::string> Names(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Layer& layer : model.layers) names.push_back(layer.name);
  return names;
}

// The lists of one device, without the blocks and layouts above them.
std::string Lists(const model::ExecutionPlan& plan, const model::Model& model, const std::string& device) {
  const auto program = Compile(plan, model);
  if (!program.ok()) return program.status().ToString();
  const std::string text = Text(*program, Names(model));
  const size_t begin = text.find("\n" + device + "\n") + device.size() + 2;
  size_t end = begin;
  while (end < text.size() && text[end] == ' ') end = text.find('\n', end) + 1;
  return text.substr(begin, end - begin);
}

model::Model ThreeLayers() { return {"three", {Dense("a"), Dense("b"), Dense("loss", 0)}}; }

TEST(CompileTest, Sync1F1B) {
  const model::ExecutionPlan plan = StagesPlan({{1, 1}, {2, 1}, {3, 1}}, 4);
  EXPECT_EQ(Lists(plan, ThreeLayers(), "p0/0"),
            "  host: LoadBatch, Report\n"
            "  compute: F a m0, F a m1, F a m2, B a m0, F a m3, B a m1, B a m2, B a m3, Update a\n"
            "  to p1/0: Send a m0, Send a m1, Send a m2, Send a m3\n"
            "  from p1/0: Receive da m0, Receive da m1, Receive da m2, Receive da m3\n");
  EXPECT_EQ(Lists(plan, ThreeLayers(), "p1/0"),
            "  host: Report\n"
            "  compute: F b m0, F b m1, B b m0, F b m2, B b m1, F b m3, B b m2, B b m3, Update b\n"
            "  to p0/0: Send da m0, Send da m1, Send da m2, Send da m3\n"
            "  to p2/0: Send b m0, Send b m1, Send b m2, Send b m3\n"
            "  from p0/0: Receive a m0, Receive a m1, Receive a m2, Receive a m3\n"
            "  from p2/0: Receive db m0, Receive db m1, Receive db m2, Receive db m3\n");
  EXPECT_THAT(
      Lists(plan, ThreeLayers(), "p2/0"),
      HasSubstr("compute: F loss m0, B loss m0, F loss m1, B loss m1, F loss m2, B loss m2, F loss m3, B loss m3\n"));
}

TEST(CompileTest, GPipe) {
  EXPECT_THAT(Lists(StagesPlan({{1, 1}, {3, 1}}, 3, ScheduleKind::kGpipe), ThreeLayers(), "p0/0"),
              HasSubstr("compute: F a m0, F a m1, F a m2, B a m0, B a m1, B a m2, Update a\n"));
}

// With one micro-batch a step, stage i of S computes S - i - 1 steps ahead of its backward pass.
TEST(CompileTest, Async1F1B) {
  const model::ExecutionPlan plan = StagesPlan({{1, 1}, {2, 1}, {3, 1}}, 1, ScheduleKind::kAsync1F1B);
  EXPECT_THAT(Lists(plan, ThreeLayers(), "p0/0"), HasSubstr("compute: F a m0, B a m0 -2, Update a -2\n"));
  EXPECT_THAT(Lists(plan, ThreeLayers(), "p1/0"), HasSubstr("compute: F b m0, B b m0 -1, Update b -1\n"));
  EXPECT_THAT(Lists(plan, ThreeLayers(), "p2/0"), HasSubstr("compute: F loss m0, B loss m0\n"));
  const auto program = Compile(plan, ThreeLayers());
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(program->lag, 3);
  EXPECT_EQ(program->open_steps, 4);
  EXPECT_EQ(program->blocks[0].lag, 3);
  EXPECT_EQ(program->blocks[1].lag, 2);
}

// The formula of the design: k = min(1 + ceil((S - i - 1) / M), max staleness + 1).
TEST(CompileTest, AsyncLagFollowsTheFormula) {
  model::Model model{"deep", {}};
  for (int i = 0; i < 6; ++i) model.layers.push_back(Dense("l" + std::to_string(i)));
  std::vector<std::pair<int, int>> ends;
  for (int i = 1; i <= 6; ++i) ends.emplace_back(i, 1);
  for (int micros = 1; micros <= 7; ++micros) {
    for (int staleness = 0; staleness <= 6; ++staleness) {
      model::ExecutionPlan plan = StagesPlan(ends, micros, ScheduleKind::kAsync1F1B);
      plan.schedule.max_staleness = staleness;
      const auto program = Compile(plan, model);
      ASSERT_THAT(program, IsOk());
      for (int i = 0; i < 6; ++i) {
        int expected = 1;
        for (int ahead = 6 - i - 1; ahead > 0; ahead -= micros) ++expected;
        if (staleness > 0) expected = std::min(expected, staleness + 1);
        EXPECT_EQ(program->blocks[static_cast<size_t>(i)].lag, expected) << micros << " " << staleness << " " << i;
      }
    }
  }
}

TEST(CompileTest, TablesOnServersAndReplicas) {
  model::ExecutionPlan plan = StagesPlan({{2, 2}, {4, 1}}, 1);
  plan.stages[0].syncs = {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}, {{{1, 2}}, Allreduce()}};
  plan.servers = model::Servers{"cpu", 2};
  EXPECT_EQ(Lists(plan, ChainModel(), "p0/1"),
            "  host: LoadBatch, Report\n"
            "  compute: F emb m0, F a m0, B a m0, B emb m0, Update a\n"
            "  collective: AllReduce a\n"
            "  to p1/0: Send a m0\n"
            "  from p1/0: Receive da m0\n"
            "  pull: PullRows emb\n"
            "  push: PushRows emb\n");
  EXPECT_EQ(Lists(plan, ChainModel(), "p1/0"),
            "  host: LoadBatch, Report\n"
            "  compute: F b..loss m0, B b..loss m0, Update b..loss\n"
            "  to p0/0: Send da m0\n"
            "  to p0/1: Send da m0\n"
            "  from p0/0: Receive a m0\n"
            "  from p0/1: Receive a m0\n");
  EXPECT_EQ(Lists(plan, ChainModel(), "server/1"), "  host: Report\n  server: UpdateRows emb\n");
}

// Buckets end where their size would be exceeded, counted from the end, where the backward pass begins.
TEST(CompileTest, Buckets) {
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 2);  // no pipeline: one micro-batch
  plan.schedule.bucket_bytes = 500;
  EXPECT_EQ(Lists(plan, ThreeLayers(), "p0/0"),
            "  host: LoadBatch, Report\n"
            "  compute: F a m0, F b..loss m0, B b..loss m0, B a m0, Update b..loss, Update a\n"
            "  collective: AllReduce b..loss, AllReduce a\n");
}

// A value with consumers on two layouts, one of them with two blocks; gradients add up where they meet.
TEST(CompileTest, Towers) {
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}, {"d2", "cpu", "", ""}};
  plan.placements = {{{{0, 1}}, {{"d0", 1}}, {}},
                     {{{1, 2}}, {{"d1", 1}}, {}},
                     {{{2, 4}}, {{"d2", 1}}, {}},
                     {{{4, 6}}, {{"d0", 0.5}, {"d1", 0.5}}, Allreduce()}};
  EXPECT_EQ(Lists(plan, TowersModel(), "d0"),
            "  host: LoadBatch, Report\n"
            "  compute: F u1 m0, Copy u1 m0, F top..loss m0, B top..loss m0, Copy du1 m0, Sum du1 m0, B u1 m0, "
            "Update top..loss, Update u1\n"
            "  collective: AllReduce top..loss\n"
            "  to d1: Send u1 m0, Send u1 m0, Send du2 m0\n"
            "  to d2: Send dv2 m0\n"
            "  from d1: Receive u2 m0, Receive du1 m0, Receive du1 m0\n"
            "  from d2: Receive v2 m0\n");
}

TEST(CompileTest, OrderOfThePlan) {
  model::ExecutionPlan plan = StagesPlan({{6, 2}}, 1);
  plan.schedule.bucket_bytes = 1;  // every operation its own block
  using model::Phase;
  for (const int op : {2, 3, 0, 1, 4, 5}) plan.order.push_back({op, Phase::kForward});
  for (const int op : {5, 4, 1, 0, 3, 2}) plan.order.push_back({op, Phase::kBackward});
  for (const int op : {0, 1, 2, 3, 4, 5}) plan.order.push_back({op, Phase::kReduce});
  EXPECT_EQ(Lists(plan, TowersModel(), "p0/0"),
            "  host: LoadBatch, Report\n"
            "  compute: F v1 m0, F v2 m0, F u1 m0, F u2 m0, F top..loss m0, B top..loss m0, B u2 m0, Sum du1 m0, "
            "B u1 m0, B v2 m0, B v1 m0, Update top..loss, Update u2, Update u1, Update v2, Update v1\n"
            "  collective: AllReduce u1, AllReduce u2, AllReduce v1, AllReduce v2, AllReduce top..loss\n");
}

// The other passes keep the order of their schedule.
TEST(CompileTest, OrderOfReductionsAlone) {
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 2);
  plan.schedule.bucket_bytes = 1;
  for (const int op : {0, 2, 1}) plan.order.push_back({op, model::Phase::kReduce});
  const auto program = Compile(plan, ThreeLayers());
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(program->form, Form::kSync1F1B);
  EXPECT_THAT(Lists(plan, ThreeLayers(), "p0/0"), HasSubstr("collective: AllReduce a, AllReduce b..loss\n"));
}

// What the step before has reduced is applied before the first pass that needs it.
TEST(CompileTest, UpdatesInTheNextStep) {
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 1);
  plan.schedule.bucket_bytes = 1;
  plan.schedule.overlap_next_step = true;
  EXPECT_EQ(Lists(plan, ThreeLayers(), "p0/0"),
            "  host: LoadBatch, Report -1\n"
            "  compute: Update a -1, F a m0, Update b..loss -1, F b..loss m0, B b..loss m0, B a m0\n"
            "  collective: AllReduce b..loss, AllReduce a\n");
  const auto program = Compile(plan, ThreeLayers());
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(program->lag, 1);
  EXPECT_EQ(program->open_steps, 2);
  plan = StagesPlan({{1, 2}, {3, 1}}, 2);
  plan.schedule.overlap_next_step = true;
  EXPECT_THAT(Lists(plan, ThreeLayers(), "p0/0"), HasSubstr("compute: Update a -1, F a m0, F a m1, B a m0, B a m1\n"));
  EXPECT_THAT(Lists(plan, ThreeLayers(), "p1/0"), HasSubstr("compute: Update b..loss -1, F b..loss m0, B b..loss m0"));
}

TEST(CompileTest, RefusesImpossibleUpdatesInTheNextStep) {
  const auto refused = [](model::ExecutionPlan plan, const model::Model& model) {
    plan.schedule.overlap_next_step = true;
    return std::string(Compile(plan, model).status().message());
  };
  EXPECT_EQ(refused(StagesPlan({{1, 1}, {3, 1}}, 1, ScheduleKind::kAsync1F1B), ThreeLayers()),
            "plan.schedule.overlapNextStep: ASYNC_1F1B updates a block as soon as it can");
  EXPECT_EQ(refused(StagesPlan({{4, 1}}, 1), ChainModel()),
            "plan.schedule.overlapNextStep: embedding tables are updated at the end of a step");
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 1);
  plan.stages[0].syncs[0].sync.mode = model::SyncMode::kNone;
  EXPECT_EQ(refused(plan, ThreeLayers()),
            "plan.schedule.overlapNextStep: replicas that differ are updated at the end of a step");
  model::Model clipped = ThreeLayers();  // the norm needs all gradients
  clipped.clips_gradients = true;
  plan = StagesPlan({{3, 2}}, 1);
  const auto at_end = Compile(plan, clipped);
  plan.schedule.overlap_next_step = true;
  const auto program = Compile(plan, clipped);
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(Hash(*program), Hash(*at_end));
}

TEST(CompileTest, ModesInWhichReplicasDiffer) {
  model::ExecutionPlan plan;
  plan.devices = {{"d0", "cpu", "", ""}, {"d1", "cpu", "", ""}, {"d2", "cpu", "", ""}};
  model::Sync sync = Allreduce(model::AllreduceAlgorithm::kLinear);
  sync.mode = model::SyncMode::kPercentage;
  sync.fraction = 0.5;
  sync.hierarchy = {{{{"d0", "d2"}, {"d1"}}, model::AllreduceAlgorithm::kRing}};
  plan.placements = {{{{0, 3}}, {{"d0", 0.5}, {"d1", 0.25}, {"d2", 0.25}}, sync}};
  const auto program = Compile(plan, ThreeLayers());
  ASSERT_THAT(program, IsOk());
  const std::string text = Text(*program, Names(ThreeLayers()));
  EXPECT_THAT(text, HasSubstr("gradients: ring {d0 d2} {d1}\n"));
  EXPECT_THAT(text, HasSubstr("average: ring {d0 d2} {d1}, then linear {d0 d1}\n"));
  EXPECT_THAT(text, HasSubstr("collective: AllReduce a..loss, Average a..loss\n"));
}

TEST(CompileTest, UpdatesThatAreClippedWaitForTheNormOfAllGradients) {
  model::Model model = ThreeLayers();
  model.clips_gradients = true;
  const auto program = Compile(StagesPlan({{1, 1}, {3, 2}}, 2), model);
  ASSERT_THAT(program, IsOk());
  const std::string text = Text(*program, Names(model));
  EXPECT_THAT(text, HasSubstr("B a m1, Update a\n  collective: Norm\n"));
  EXPECT_THAT(text, HasSubstr("collective: AllReduce b..loss, Norm\n"));
  EXPECT_EQ(program->layouts.back().devices.size(), 3U);
  const auto alone = Compile(StagesPlan({{3, 1}}, 1), model);
  ASSERT_THAT(alone, IsOk());
  EXPECT_EQ(alone->norm_group, -1);
  EXPECT_THAT(Text(*alone, Names(model)), HasSubstr("collective: Norm\n"));
  EXPECT_THAT(Compile(StagesPlan({{1, 1}, {3, 1}}, 1, ScheduleKind::kAsync1F1B), model).status().message(),
              HasSubstr("does not clip gradients"));
}

TEST(CompileTest, UpdatesOfHoldersOfASharedParameterWaitForItsSum) {
  model::Model model = ThreeLayers();
  model.layers[0].attributes["shared"] = "88 w\n";
  model.layers[1].attributes["shared"] = "88 w\n5 only.here\n";
  const auto program = Compile(StagesPlan({{1, 1}, {3, 2}}, 2), model);
  ASSERT_THAT(program, IsOk());
  ASSERT_EQ(program->shared.size(), 1U);
  EXPECT_EQ(program->shared[0].name, "w");
  EXPECT_EQ(program->shared[0].floats, 88);
  const Group& group = program->groups[static_cast<size_t>(program->shared[0].group)];
  EXPECT_EQ(program->layouts[static_cast<size_t>(group.layout)].devices.size(), 3U);
  const std::string text = Text(*program, Names(model));
  EXPECT_THAT(text, HasSubstr("B a m1, Update a\n  collective: Share w\n"));
  EXPECT_THAT(text, HasSubstr("collective: AllReduce b..loss, Share w\n"));
  // On one device nothing is sent, but the holders' gradients are added all the same.
  model::ExecutionPlan buckets = StagesPlan({{3, 1}}, 1);
  buckets.schedule.bucket_bytes = 1;
  const auto alone = Compile(buckets, model);
  ASSERT_THAT(alone, IsOk());
  EXPECT_EQ(alone->shared[0].group, -1);
  EXPECT_THAT(Text(*alone, Names(model)), HasSubstr("collective: Share w\n"));
  // Before the norm, which needs the sums.
  model.clips_gradients = true;
  const auto clipped = Compile(StagesPlan({{1, 1}, {3, 2}}, 2), model);
  ASSERT_THAT(clipped, IsOk());
  EXPECT_THAT(Text(*clipped, Names(model)), HasSubstr("AllReduce b..loss, Share w, Norm\n"));
}

TEST(CompileTest, SharedParametersThatCannotBeAddedAreRefused) {
  model::Model model = ThreeLayers();
  model.layers[0].attributes["shared"] = "88 w\n";
  model.layers[1].attributes["shared"] = "88 w\n";
  const auto refused = [&](const model::ExecutionPlan& plan) {
    return std::string(Compile(plan, model).status().message());
  };
  EXPECT_THAT(refused(StagesPlan({{1, 1}, {3, 1}}, 1, ScheduleKind::kAsync1F1B)),
              HasSubstr("at different times, but they share the parameter 'w'"));
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 1);
  plan.stages[0].syncs[0].sync.mode = model::SyncMode::kNone;
  EXPECT_THAT(refused(plan), HasSubstr("replicas that differ do not add the gradients of the parameter 'w'"));
  for (const char* text : {"w\n", "0 w\n", "-1 w\n", "88\n", "88 \n", "89 w\n", "\n"}) {
    model.layers[1].attributes["shared"] = text;
    EXPECT_FALSE(Compile(StagesPlan({{3, 1}}, 1), model).ok()) << text;
  }
}

TEST(CompileTest, EvaluationIsForwardOnly) {
  const auto program = CompileEvaluation(StagesPlan({{1, 1}, {3, 2}}, 4, ScheduleKind::kAsync1F1B), ThreeLayers());
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(Text(*program, Names(ThreeLayers())),
              HasSubstr("p1/1\n  host: LoadBatch, Report\n  compute: F b..loss m0\n  from p0/0: Receive a m0\n"));
}

TEST(CompileTest, RefusalsNameTheFieldOrOperation) {
  const auto refused = [](const model::ExecutionPlan& plan, const model::Model& model) {
    return std::string(Compile(plan, model).status().message());
  };
  EXPECT_EQ(refused(StagesPlan({{4, 2}}, 1), ChainModel()),
            "operation 'emb' has embedding rows and 2 replicas, so the plan needs parameter servers");
  model::ExecutionPlan plan = StagesPlan({{3, 2}}, 1);
  plan.stages[0].syncs.clear();
  EXPECT_EQ(refused(plan, ThreeLayers()),
            "operation 'a' has parameters and 2 replicas: the plan must synchronise it by allreduce");
  plan = StagesPlan({{2, 1}, {3, 2}}, 1);
  plan.stages[1].syncs[0].sync.mode = model::SyncMode::kNone;
  model::Model model = ThreeLayers();
  model.layers[2].weight_bytes = 4;
  EXPECT_THAT(refused(plan, model), HasSubstr("operation 'loss': replicas that differ (a mode other than FULL)"));
  model.layers[1].inputs = {2};
  EXPECT_EQ(refused(StagesPlan({{3, 1}}, 1), model), "operation 'b': its input 2 is not an operation before it");
  plan = StagesPlan({{1, 1}, {2, 1}, {6, 1}}, 1, ScheduleKind::kAsync1F1B);
  EXPECT_EQ(refused(plan, TowersModel()), "schedule.kind: ASYNC_1F1B needs stages that form a chain");
}

// What would need gigabytes is refused before it is made.
TEST(CompileTest, LargePlansAreRefusedWhileTheyAreSmall) {
  constexpr auto kLarge = absl::StatusCode::kResourceExhausted;
  // A replica of a block, in each micro-batch.
  EXPECT_THAT(Compile(StagesPlan({{1, 1}, {3, 1}}, 65'536), ThreeLayers(), 100'000), StatusIs(kLarge));
  EXPECT_THAT(Compile(StagesPlan({{1, 50'000}, {3, 49'000}}, 65'536), ThreeLayers()), StatusIs(kLarge));
  // A group of 90,000 members for each of 10,000 blocks.
  model::Model chain{"chain", {}};
  for (int i = 0; i < 10'000; ++i) chain.layers.push_back(Dense("l" + std::to_string(i)));
  model::ExecutionPlan buckets = StagesPlan({{10'000, 90'000}}, 1);
  buckets.schedule.bucket_bytes = 1;
  EXPECT_THAT(Compile(buckets, chain), StatusIs(kLarge));
  // A flow from 40,000 replicas to each of 5,000 stages.
  model::Model star{"star", {Dense("source", 400, {-1})}};
  std::vector<std::pair<int, int>> stages = {{1, 40'000}};
  for (int i = 1; i <= 5'000; ++i) {
    star.layers.push_back(Dense("s" + std::to_string(i), 400, {0}));
    stages.emplace_back(i + 1, 1);
  }
  EXPECT_THAT(Compile(StagesPlan(stages, 1), star), StatusIs(kLarge));
}

TEST(CompileTest, EqualPlansHaveEqualHashes) {
  const model::ExecutionPlan plan = StagesPlan({{1, 2}, {3, 1}}, 4);
  const auto a = Compile(plan, ThreeLayers()), b = Compile(plan, ThreeLayers());
  EXPECT_EQ(Hash(*a), Hash(*b));
  model::ExecutionPlan other = plan;
  other.stages[0].groups = {{"p0", 1, 0.75}, {"p0", 1, 0.25}};
  EXPECT_NE(Hash(*a), Hash(*Compile(other, ThreeLayers())));
}

}  // namespace
}  // namespace medley::program
