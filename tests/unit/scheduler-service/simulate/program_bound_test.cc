// Bounds that were computed by hand; random_plans_test.cc compares them with simulations.
#include "scheduler-service/simulate/program_bound.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/program/compile.h"
#include "scheduler-service/simulate/simulate.h"
#include "tests/unit/common/program/sample_models.h"
#include "tests/unit/scheduler-service/simulate/one_and_two.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using program::Program;
using testing::DoubleNear;
using testing::HasSubstr;

Program CompiledTwo(const model::ExecutionPlan& plan) {
  auto compiled = program::Compile(plan, {"two", {program::Dense("a"), program::Dense("loss", 0)}});
  EXPECT_THAT(compiled, IsOk());
  return compiled.ok() ? *std::move(compiled) : Program{};
}

ProgramBound Bound(const Program& program, const Durations& durations, int samples) {
  auto bound = BoundOfProgram(program, durations, samples);
  EXPECT_THAT(bound, IsOk());
  return bound.ok() ? *std::move(bound) : ProgramBound{};
}

// Two stages, three micro-batches, each of which passes both stages in 6 s.
TEST(ProgramBoundTest, PathAndDeviceOfAPipeline) {
  const Program program = CompiledTwo(program::StagesPlan({{1, 1}, {2, 1}}, 3));
  const ProgramBound bound = Bound(program, OneAndTwo(program), 3);
  EXPECT_THAT(bound.path, DoubleNear(6, kNear));
  EXPECT_THAT(bound.compute, DoubleNear(9, kNear));
  EXPECT_EQ(bound.link, 0);
  EXPECT_EQ(bound.seconds(), bound.compute);
}

// A sample's output has 40 bytes: half a second to send, as much until it arrives, in both directions.
TEST(ProgramBoundTest, MessagesAreInThePathAndShareTheirChannel) {
  const Program program = CompiledTwo(program::StagesPlan({{1, 1}, {2, 1}}, 3));
  Durations durations = OneAndTwo(program);
  durations.links[0] = {0.5, 80};
  const ProgramBound bound = Bound(program, durations, 3);
  EXPECT_THAT(bound.path, DoubleNear(8, kNear));
  EXPECT_THAT(bound.link, DoubleNear(1.5, kNear));
  EXPECT_THAT(bound.link_name, HasSubstr("messages from p"));
  durations.card_bytes_per_second.assign(durations.card_bytes_per_second.size(), 8);
  EXPECT_THAT(Bound(program, durations, 3).link, DoubleNear(15, kNear)) << "120 bytes through a card";
  EXPECT_THAT(Bound(program, durations, 3).link_name, HasSubstr("sent by p"));
}

TEST(ProgramBoundTest, ReductionsFollowTheLongestBackwardPass) {
  const Program program = CompiledTwo(program::StagesPlan({{2, 2}}, 1));
  Durations durations = OneAndTwo(program);
  durations.reductions.assign(durations.reductions.size(), 7);
  const ProgramBound bound = Bound(program, durations, 2);
  EXPECT_THAT(bound.path, DoubleNear(10, kNear));
  EXPECT_THAT(bound.link, DoubleNear(7, kNear));
  EXPECT_THAT(bound.link_name, HasSubstr("reductions of p0"));
}

TEST(ProgramBoundTest, AQuotaLengthensWhatADeviceComputes) {
  const Program program = CompiledTwo(program::StagesPlan({{2, 1}}, 1));
  Durations durations = OneAndTwo(program);
  durations.quotas.assign(durations.passes.front().size(), {0.1, 0.025, 0});
  EXPECT_THAT(Bound(program, durations, 1).compute, DoubleNear(12, kNear));
}

TEST(ProgramBoundTest, WrongInput) {
  const Program program = CompiledTwo(program::StagesPlan({{2, 1}}, 1));
  EXPECT_THAT(BoundOfProgram(program, OneAndTwo(program), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 samples a step")));
  Durations durations = OneAndTwo(program);
  durations.reductions.clear();
  EXPECT_THAT(BoundOfProgram(program, durations, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reductions has 0 entries")));
}

}  // namespace
}  // namespace medley::sched
