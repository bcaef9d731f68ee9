#include "operator/builders/slots.h"
#include "common/model/execution_plan.h"

#include <gmock/gmock.h>

#include <set>

namespace medley::ops {
namespace {

using testing::ElementsAre;
using testing::Field;

model::ExecutionPlan Plan(std::vector<std::vector<model::Group>> stages, int servers = 0) {
  model::ExecutionPlan plan;
  for (auto& groups : stages) plan.stages.push_back({{}, std::move(groups), {}, 0});
  if (servers > 0) plan.servers = model::Servers{"cpu", servers};
  return plan;
}

auto Named(const char* name) { return Field(&MemberSlot::member, std::string(name)); }

TEST(SlotsTest, NamesFollowThePlan) {
  EXPECT_THAT(AssignSlots("adult", Plan({{{"cpu", 2, 1}}, {{"gpu", 1, 0.5}, {"cpu", 1, 0.5}}}, 2)),
              ElementsAre(Named("adult-0-cpu-0"), Named("adult-0-cpu-1"), Named("adult-1-gpu-0"),
                          Named("adult-1-cpu-1"), Named("adult-server-0"), Named("adult-server-1")));
}

TEST(SlotsTest, ShardsInTrainersNeedNoPods) {
  auto plan = Plan({{{"cpu", 2, 1}}});
  plan.servers = model::Servers{"", 2, true};
  EXPECT_THAT(AssignSlots("adult", plan), ElementsAre(Named("adult-0-cpu-0"), Named("adult-0-cpu-1")));
  // A move from servers keeps the trainers.
  const auto served = AssignSlots("adult", Plan({{{"cpu", 2, 1}}}, 1));
  EXPECT_THAT(AssignSlots("adult", plan, served), ElementsAre(Named("adult-0-cpu-0"), Named("adult-0-cpu-1")));
}

TEST(SlotsTest, TheSamePlanKeepsEveryPod) {
  const auto plan = Plan({{{"cpu", 3, 1}}, {{"gpu", 2, 1}}}, 1);
  const auto slots = AssignSlots("adult", plan);
  EXPECT_EQ(AssignSlots("adult", plan, slots), slots);
}

TEST(SlotsTest, DevicesKeepTheirPods) {
  model::ExecutionPlan plan;
  plan.devices = {{"a", "cpu", "", ""}, {"b", "gpu", "", ""}, {"c", "cpu", "", ""}};
  const auto slots = AssignSlots("adult", plan);
  EXPECT_THAT(slots, ElementsAre(Named("adult-0-cpu-0"), Named("adult-0-gpu-1"), Named("adult-0-cpu-2")));
  EXPECT_THAT(slots, ElementsAre(Field(&MemberSlot::device, "a"), Field(&MemberSlot::device, "b"),
                                 Field(&MemberSlot::device, "c")));
  plan.devices = {{"c", "cpu", "", ""}, {"d", "cpu", "", ""}, {"b", "gpu", "", ""}};
  const auto next = AssignSlots("adult", plan, slots);
  EXPECT_THAT(next, ElementsAre(Named("adult-0-cpu-2"), Named("adult-0-cpu-0"), Named("adult-0-gpu-1")))
      << "the state of c and b stays where it is; d uses the pod that a no longer needs";
  EXPECT_EQ(AssignSlots("adult", plan, next), next);
  const auto stages = AssignSlots("adult", Plan({{{"cpu", 2, 1}}}), next);
  EXPECT_THAT(stages, ElementsAre(Named("adult-0-cpu-2"), Named("adult-0-cpu-0")));
}

TEST(SlotsTest, APodOfAnotherZoneIsNotUsedAgain) {
  const auto plan = Plan({{{"gpu", 2, 1}}});
  const auto in_a = AssignSlots("j", plan, {}, {}, {{"gpu", "a"}});
  EXPECT_THAT(in_a, testing::Each(Field(&MemberSlot::zone, std::string("a"))));
  EXPECT_EQ(AssignSlots("j", plan, in_a, {}, {{"gpu", "a"}}), in_a);
  EXPECT_THAT(AssignSlots("j", plan, in_a, {}, {{"gpu", "b"}}), ElementsAre(Named("j-0-gpu-2"), Named("j-0-gpu-3")));
  // Unpinned, every pod of the pool serves.
  EXPECT_THAT(AssignSlots("j", plan, in_a), ElementsAre(Named("j-0-gpu-0"), Named("j-0-gpu-1")));
}

TEST(SlotsTest, APoolAtItsLimitMovesItsPodsToAnotherStage) {
  const auto before = AssignSlots("j", Plan({{{"a", 4, 1}}, {{"b", 2, 1}}}));
  const auto after = AssignSlots("j", Plan({{{"b", 2, 1}}, {{"a", 4, 1}}}), before);
  std::set<std::string> old_names;
  for (const auto& slot : before) old_names.insert(slot.member);
  for (const auto& slot : after) EXPECT_TRUE(old_names.contains(slot.member)) << slot.member;
  EXPECT_EQ(after[0].stage, 0);
  EXPECT_EQ(after[0].pool, "b");
}

TEST(SlotsTest, NewPodsNeverTakeANameThatIsInUse) {
  // j-0-a-0 serves stage 1 now; a second trainer of pool a on stage 0 must be another pod.
  const std::vector<MemberSlot> held = {{"j-0-a-0", Role::kTrainer, "a", 0, 0}};
  const auto slots = AssignSlots("j", Plan({{{"a", 2, 1}}, {{"a", 1, 1}}}), held, {"j-0-a-1"});
  std::set<std::string> names;
  for (const auto& slot : slots) EXPECT_TRUE(names.insert(slot.member).second) << slot.member;
  EXPECT_EQ(slots[0].member, "j-0-a-0");
  EXPECT_FALSE(names.contains("j-0-a-1"));
}

TEST(SlotsTest, AServerNeverBecomesATrainer) {
  const auto before = AssignSlots("j", Plan({{{"cpu", 1, 1}}}, 3));
  const auto after = AssignSlots("j", Plan({{{"cpu", 3, 1}}}, 1), before);
  for (const auto& slot : after) EXPECT_EQ(slot.role == Role::kServer, slot.member.rfind("j-server", 0) == 0);
}

TEST(SlotsTest, SlotsStayWhereTheirPoolIsPinnedAlikeOrNotAtAll) {
  const std::vector<MemberSlot> slots = {{"m", Role::kTrainer, "p", 0, 0, "a"}, {"n", Role::kServer, "q", 0, 0}};
  EXPECT_TRUE(SameZones(slots, {{"p", "a"}, {"q", ""}}));
  EXPECT_TRUE(SameZones(slots, {{"p", ""}}));
  EXPECT_FALSE(SameZones(slots, {{"p", "b"}}));
  EXPECT_FALSE(SameZones(slots, {{"p", "a"}, {"q", "a"}}));
}

TEST(SlotsTest, OnlyUnitsOfPoolsThatTheNewPlanAsksForLeaveTooLate) {
  const auto before = AssignSlots("adult", Plan({{{"cpu", 2, 1}}, {{"gpu", 1, 1}}}, 1));
  const auto now = AssignSlots("adult", Plan({{{"gpu", 1, 1}}}, 3), before);
  EXPECT_THAT(LeavingUnits(before, now), ElementsAre(testing::Pair("cpu", 2))) << "for two more servers";
  EXPECT_THAT(LeavingUnits(before, AssignSlots("adult", Plan({{{"gpu", 2, 1}}}, 1), before)), testing::IsEmpty())
      << "a new unit of gpu, where none leaves";
  EXPECT_THAT(LeavingUnits(before, before), testing::IsEmpty());
}

}  // namespace
}  // namespace medley::ops
