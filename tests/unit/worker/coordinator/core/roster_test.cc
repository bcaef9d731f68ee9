#include "worker/coordinator/core/roster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"

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

// Operation 0 on devices c and a, which agree in groups of one; operation 1 on b alone; the tables of operation 2 on a.
job::v1::ApplyPlanRequest Placed() {
  job::v1::ApplyPlanRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        plan {
          generation: 1
          devices { id: "a" pool: "x" }
          devices { id: "b" pool: "y" }
          devices { id: "c" pool: "x" }
          placements {
            operations { first: 0 end: 1 }
            replicas { device: "c" share: 0.25 }
            replicas { device: "a" share: 0.75 }
            sync {
              kind: SYNC_KIND_ALLREDUCE
              root: "a"
              hierarchy {
                algorithm: ALLREDUCE_ALGORITHM_LINEAR
                groups { devices: "a" }
                groups { devices: "c" }
              }
            }
          }
          placements {
            operations { first: 1 end: 2 }
            replicas { device: "b" share: 1 }
          }
          placements {
            operations { first: 2 end: 3 }
            replicas { device: "a" share: 0.5 }
            replicas { device: "b" share: 0.5 }
            sync { kind: SYNC_KIND_PARAMETER_SERVER }
          }
          servers { pool: "x" units: 1 }
          schedule { micro_batches: 1 }
        }
        slots { member: "server" role: MEMBER_ROLE_SERVER pool: "x" }
        slots { member: "pod-c" role: MEMBER_ROLE_TRAINER pool: "x" device: "c" }
        slots { member: "pod-a" role: MEMBER_ROLE_TRAINER pool: "x" device: "a" }
        slots { member: "pod-b" role: MEMBER_ROLE_TRAINER pool: "y" device: "b" }
      )pb",
      &request));
  return request;
}

RosterFit Without(const std::set<std::string>& lost, const job::v1::ApplyPlanRequest& request = TwoStages()) {
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

std::vector<std::string> PeersOf(const RosterFit& fit) {
  std::vector<std::string> names;
  for (const job::v1::Peer& peer : fit.peers) {
    names.push_back(fmt::format("{} {}", peer.slot().member(), peer.slot().index()));
  }
  return names;
}

TEST(RosterTest, PeersOfPlacementsAreInTheOrderOfTheirDevices) {
  const RosterFit fit = Without({}, Placed());
  EXPECT_TRUE(fit.covers && fit.full());
  EXPECT_EQ(fit.plan.SerializeAsString(), Placed().plan().SerializeAsString());
  EXPECT_THAT(PeersOf(fit), testing::ElementsAre("pod-a 0", "pod-b 1", "pod-c 2", "server 0"));
}

TEST(RosterTest, PlacementsKeepTheReplicasThatAreLeft) {
  const RosterFit fit = Without({"pod-a"}, Placed());
  EXPECT_TRUE(fit.covers);
  EXPECT_THAT(fit.missing, testing::ElementsAre("pod-a"));
  EXPECT_THAT(PeersOf(fit), testing::ElementsAre("pod-b 0", "pod-c 1", "server 0"));
  ASSERT_EQ(fit.plan.devices_size(), 2);
  const plan::v1::Placement& first = fit.plan.placements(0);
  ASSERT_EQ(first.replicas_size(), 1);
  EXPECT_EQ(first.replicas(0).device(), "c");
  EXPECT_EQ(first.replicas(0).share(), 1);
  EXPECT_EQ(first.sync().root(), "");
  EXPECT_EQ(first.sync().hierarchy(0).groups_size(), 1);
  const auto plan = model::FromProto(fit.plan);
  ASSERT_THAT(plan, base::IsOk());
  EXPECT_EQ(model::Validate(*plan, 3), absl::OkStatus());
  EXPECT_FALSE(Without({"pod-b"}, Placed()).covers) << "operation 1 has no other replica";
  EXPECT_FALSE(Without({"server"}, Placed()).covers);
}

// The tables' trainers hold nothing: the server does.
TEST(RosterTest, APlacementSurvivesWithAnyReplica) {
  const RosterFit fit = Without({}, Placed());
  EXPECT_TRUE(StateSurvives(fit.plan, fit.peers, {"server", "pod-b", "pod-c"}));
  EXPECT_TRUE(StateSurvives(fit.plan, fit.peers, {"server", "pod-b", "pod-a"}));
  EXPECT_FALSE(StateSurvives(fit.plan, fit.peers, {"server", "pod-a", "pod-c"}));
  EXPECT_FALSE(StateSurvives(fit.plan, fit.peers, {"server", "pod-b"}));
  EXPECT_FALSE(StateSurvives(fit.plan, fit.peers, {"pod-a", "pod-b", "pod-c"}));
}

TEST(RosterTest, EachDeviceIsOneSlotOfItsPool) {
  const auto refusal = [](const auto& change) {
    job::v1::ApplyPlanRequest request = Placed();
    change(request);
    return std::string(ValidateApply(request).message());
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(refusal([](auto& r) { r.mutable_slots(1)->set_device("d"); }), "slot pod-c: the plan has no device 'd'");
  EXPECT_EQ(refusal([](auto& r) { r.mutable_slots(1)->set_device("b"); }),
            "slot pod-c: device 'b' is of pool y, not x");
  EXPECT_EQ(refusal([](auto& r) { r.mutable_slots(1)->set_device("a"); }), "slot pod-a: another slot has device 'a'");
  EXPECT_EQ(refusal([](auto& r) { r.mutable_slots()->RemoveLast(); }), "device 'b' of the plan has no slot");
  EXPECT_EQ(refusal([](auto& r) { r.mutable_slots(0)->set_pool("y"); }),
            "slot server: pool y is not the servers' pool x");
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

// Two trainers of the embedding stage, each with a shard, and a dense stage.
job::v1::ApplyPlanRequest WithShards() {
  job::v1::ApplyPlanRequest request = TwoStages();
  request.mutable_plan()->mutable_stages(0)->mutable_syncs(0)->mutable_sync()->set_kind(
      plan::v1::SYNC_KIND_PARAMETER_SERVER);
  request.mutable_plan()->mutable_servers()->set_in_trainers(true);
  request.mutable_plan()->mutable_servers()->set_units(2);
  return request;
}

// All members of the request and their shards, except `lost`.
RosterFit FitWithout(const std::set<std::string>& lost) {
  const job::v1::ApplyPlanRequest request = WithShards();
  EXPECT_EQ(ValidateApply(request), absl::OkStatus());
  std::map<std::string, job::v1::Hello> members;
  for (const job::v1::MemberSlot& slot : request.slots()) {
    for (const bool shard : {false, true}) {
      job::v1::Hello hello;
      hello.set_member(slot.member() + (shard ? "/rows" : ""));
      hello.set_role(shard ? job::v1::MEMBER_ROLE_SERVER : slot.role());
      hello.set_pool(slot.pool());
      hello.set_address(shard ? "1.2.3.4:5" : "1.2.3.4");
      hello.set_instance(hello.member() + "-instance");
      if (!lost.contains(hello.member())) members[hello.member()] = hello;
    }
  }
  return FitPlan(request, [&](const std::string& name) {
    const auto found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
  });
}

std::vector<std::string> NamesOf(const RosterFit& fit) {
  std::vector<std::string> names;
  for (const job::v1::Peer& peer : fit.peers) names.push_back(peer.slot().member());
  return names;
}

TEST(ShardsInTrainersTest, FollowTheTrainersOfTheStagesWithTables) {
  const RosterFit fit = FitWithout({});
  EXPECT_TRUE(fit.full());
  EXPECT_TRUE(fit.covers);
  EXPECT_THAT(NamesOf(fit), testing::ElementsAre("s0-0", "s0-1", "s1-0", "s1-1", "s1-2", "s0-0/rows", "s0-1/rows"));
  EXPECT_EQ(fit.peers.back().slot().index(), 1);
  EXPECT_EQ(fit.peers.back().slot().role(), job::v1::MEMBER_ROLE_SERVER);
  EXPECT_EQ(fit.peers.back().address(), "1.2.3.4:5");
  EXPECT_EQ(fit.peers.back().instance(), "s0-1/rows-instance");
}

// The plan goes on with the shards of the trainers that are left.
TEST(ShardsInTrainersTest, ALostTrainerOrShardTakesTheOtherWithIt) {
  for (const char* lost : {"s0-0", "s0-0/rows"}) {
    const RosterFit fit = FitWithout({lost});
    EXPECT_TRUE(fit.covers) << lost;
    EXPECT_THAT(fit.missing, testing::ElementsAre("s0-0")) << lost;
    EXPECT_THAT(NamesOf(fit), testing::ElementsAre("s0-1", "s1-0", "s1-1", "s1-2", "s0-1/rows")) << lost;
    EXPECT_EQ(fit.plan.servers().units(), 1) << lost;
    EXPECT_THAT(model::FromProto(fit.plan).value().servers, testing::Optional(model::Servers{"", 1, true}));
  }
  EXPECT_FALSE(FitWithout({"s0-0", "s0-1/rows"}).covers);
}

TEST(ShardsInTrainersTest, TheStateIsLostWithAShard) {
  const RosterFit fit = FitWithout({});
  std::set<std::string> all;
  for (const std::string& name : NamesOf(fit)) all.insert(name);
  EXPECT_TRUE(StateSurvives(fit.plan, fit.peers, all));
  for (const char* lost : {"s0-0/rows", "s0-1/rows"}) {
    std::set<std::string> left = all;
    left.erase(lost);
    EXPECT_FALSE(StateSurvives(fit.plan, fit.peers, left)) << lost;
  }
  all.erase("s1-0");
  EXPECT_TRUE(StateSurvives(fit.plan, fit.peers, all)) << "another trainer of its stage has the same state";
}

TEST(ShardsInTrainersTest, HaveNoSlotsAndAsManyAsTrainers) {
  job::v1::ApplyPlanRequest request = WithShards();
  request.mutable_plan()->mutable_servers()->set_units(3);
  EXPECT_THAT(ValidateApply(request), base::StatusIs(absl::StatusCode::kInvalidArgument,
                                                     testing::HasSubstr("3 shards in trainers, but 2 trainers")));
  request = WithShards();
  request.add_slots()->set_member("server");
  request.mutable_slots()->rbegin()->set_role(job::v1::MEMBER_ROLE_SERVER);
  EXPECT_THAT(ValidateApply(request),
              base::StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("1 slots are for servers")));
}

}  // namespace
}  // namespace medley::worker
