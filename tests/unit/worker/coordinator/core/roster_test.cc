#include "worker/coordinator/core/roster.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"

namespace medley::worker {
namespace {

// Two stages of pool "a": units a/0, a/1, then a/2, a/3 and b/0. The second agrees in two groups; a/3 adds.
job::v1::ApplyPlanRequest TwoStages() {
  job::v1::ApplyPlanRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        plan {
          generation: 1
          stages {
            operations { first: 0 end: 1 }
            groups { pool: "a" units: 2 share: 1 }
            syncs {
              operations { first: 0 end: 1 }
              sync { kind: SYNC_KIND_ALLREDUCE }
            }
          }
          stages {
            operations { first: 1 end: 2 }
            groups { pool: "a" units: 2 share: 0.5 }
            groups { pool: "b" units: 1 share: 0.5 }
            syncs {
              operations { first: 1 end: 2 }
              sync {
                kind: SYNC_KIND_ALLREDUCE
                root: "a/3"
                hierarchy {
                  algorithm: ALLREDUCE_ALGORITHM_LINEAR
                  groups { devices: "a/2" devices: "a/3" }
                  groups { devices: "b/0" }
                }
              }
            }
          }
          schedule { micro_batches: 1 }
        }
        slots { member: "s0-0" role: MEMBER_ROLE_TRAINER stage: 0 index: 0 pool: "a" }
        slots { member: "s0-1" role: MEMBER_ROLE_TRAINER stage: 0 index: 1 pool: "a" }
        slots { member: "s1-0" role: MEMBER_ROLE_TRAINER stage: 1 index: 0 pool: "a" }
        slots { member: "s1-1" role: MEMBER_ROLE_TRAINER stage: 1 index: 1 pool: "a" }
        slots { member: "s1-2" role: MEMBER_ROLE_TRAINER stage: 1 index: 2 pool: "b" }
      )pb",
      &request));
  return request;
}

RosterFit Without(const std::set<std::string>& lost) {
  const job::v1::ApplyPlanRequest request = TwoStages();
  EXPECT_EQ(ValidateApply(request), absl::OkStatus());
  std::map<std::string, job::v1::Hello> members;
  for (const job::v1::MemberSlot& slot : request.slots()) {
    if (lost.contains(slot.member())) continue;
    members[slot.member()].set_role(slot.role());
    members[slot.member()].set_pool(slot.pool());
  }
  return FitPlan(request, [&](const std::string& member) {
    const auto found = members.find(member);
    return found == members.end() ? nullptr : &found->second;
  });
}

// "root: group group", each group its devices.
std::string Groups(const RosterFit& fit) {
  const plan::v1::Sync& sync = fit.plan.stages(1).syncs(0).sync();
  std::string text = sync.root() + ":";
  for (const plan::v1::HierarchyLevel& level : sync.hierarchy()) {
    for (const plan::v1::DeviceGroup& group : level.groups()) {
      text += " ";
      for (const std::string& device : group.devices()) text += "[" + device + "]";
    }
  }
  return text;
}

TEST(RosterTest, GroupsOfDevicesFollowTheUnitsThatAreLeft) {
  EXPECT_EQ(Groups(Without({})), "a/3: [a/2][a/3] [b/0]");
  EXPECT_EQ(Groups(Without({"s0-0"})), "a/2: [a/1][a/2] [b/0]");  // the units after it are renamed
  EXPECT_EQ(Groups(Without({"s1-0"})), "a/2: [a/2] [b/0]");
  EXPECT_EQ(Groups(Without({"s1-1"})), ": [a/2] [b/0]");  // without a root, the first replica adds
  EXPECT_EQ(Groups(Without({"s1-2"})), "a/3: [a/2][a/3]");
  EXPECT_EQ(Groups(Without({"s0-1", "s1-0", "s1-1"})), ": [b/0]");
}

TEST(RosterTest, EveryCutPlanIsValid) {
  const std::vector<std::string> names = {"s0-0", "s0-1", "s1-0", "s1-1", "s1-2"};
  int covered = 0;
  for (unsigned lost = 0; lost < 1U << names.size(); ++lost) {
    std::set<std::string> missing;
    for (size_t i = 0; i < names.size(); ++i) {
      if (lost >> i & 1U) missing.insert(names[i]);
    }
    const RosterFit fit = Without(missing);
    if (!fit.covers) continue;
    ++covered;
    const auto plan = model::FromProto(fit.plan);
    ASSERT_THAT(plan, base::IsOk());
    EXPECT_EQ(model::Validate(*plan, 2), absl::OkStatus()) << lost;
  }
  EXPECT_EQ(covered, 3 * 7);
}

}  // namespace
}  // namespace medley::worker
