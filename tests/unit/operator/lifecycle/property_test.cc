// Properties of the life of a job under random events, driven through a fake cluster:
//   1. The same events in any order, seen by any number of passes in between, end in the same cluster.
//   2. So they do when the operator restarts, with an empty memory, at any moment.
//   3. A cluster in which nothing happens comes to rest: no action is repeated without end.
//   4. No pod is created twice, no member of the generation in force is deleted, and a job that is suspended, finished
//      or deleted starts nothing (FakeCluster::violations).
//
// For 1 and 2 the events only take away pods, nodes and units. Whether units that come back pay for a move depends on
// the plan that is in force by then, on purpose: a job does not move without a gain.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

#include "common/base/status.h"
#include "common/base/testing/soak.h"
#include "operator/api/resources.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::IsEmpty;

constexpr uint32_t kFirstSeed = 20261122;
const int kSeeds = base::Rounds(4, 12);

using Event = std::pair<std::string, std::function<void(FakeCluster&)>>;

// A running member of this number, or nothing.
std::string Member(const FakeCluster& cluster, size_t number) {
  std::vector<std::string> members;
  for (const auto& [name, pod] : cluster.pods()) {
    if (pod.label(kRoleLabel) == "trainer") members.push_back(name);
  }
  return members.empty() ? "" : members[number % members.size()];
}

Event RandomLoss(std::mt19937& random) {
  const size_t number = random() % 8;
  const std::string pool(1, static_cast<char>('a' + random() % 2));  // c stays
  const std::string node = pool + "-" + std::to_string(random() % 2);
  switch (random() % 7) {
    case 0:
      return {"a member fails", [=](FakeCluster& c) { c.FailPod(Member(c, number), 137); }};
    case 1:
      return {"a member's pod is deleted", [=](FakeCluster& c) { c.DeletePod(Member(c, number)); }};
    case 2:
      return {"a member's pod is terminating",
              [=](FakeCluster& c) { c.TerminatePod(Member(c, number), base::seconds(30)); }};
    case 3:
      return {"spot notice of " + node, [=](FakeCluster& c) { c.noticed_nodes.insert(node); }};
    case 4:
      return {"not ready: " + node, [=](FakeCluster& c) { c.nodes_not_ready.insert(node); }};
    case 5:
      return {"the limit of " + pool + " is 1", [=](FakeCluster& c) { c.pools[pool].limit = 1; }};
    default:
      return {"the coordinator's pod is deleted", [](FakeCluster& c) { c.DeletePod("adult-coordinator"); }};
  }
}

Event RandomEvent(std::mt19937& random) {
  const std::string pool(1, static_cast<char>('a' + random() % 3));
  const int limit = static_cast<int>(random() % 5);
  const double price = 0.25 * static_cast<double>(1 + random() % 8);
  const bool on = random() % 2 == 0;
  switch (random() % 12) {
    case 0:
      return {"price", [=](FakeCluster& c) { c.pools[pool].price = price; }};
    case 1:
      return {"no price", [=](FakeCluster& c) { c.pools[pool].price.reset(); }};
    case 2:
      return {"limit", [=](FakeCluster& c) { c.pools[pool].limit = limit; }};
    case 3:
      return {"suspend", [=](FakeCluster& c) { c.SetSpec({{"runPolicy", {{"suspend", on}}}}); }};
    case 4:
      return {"refused edit", [=](FakeCluster& c) { c.SetSpec({{"model", {{"name", on ? "resnet" : "ctrdnn"}}}}); }};
    case 5:
      return {"unreadable edit", [=](FakeCluster& c) {
                c.SetSpec({{"objective", {{"minThroughput", on ? kube::Json("x") : kube::Json()}}}});
              }};
    case 6:
      return {"node comes back", [](FakeCluster& c) {
                c.noticed_nodes.clear();
                c.nodes_not_ready.clear();
              }};
    case 7:
      return {"the scheduler fails", [=](FakeCluster& c) {
                c.planner = nullptr;
                if (on) c.planner = [](const auto&) { return AskForPlan::Outcome{base::Unavailable("down"), true}; };
              }};
    case 8:
      return {"pods cannot be created", [=](FakeCluster& c) {
                c.failures.clear();
                if (on) c.failures["create pods"] = base::PermissionDenied("exceeded quota: q");
              }};
    case 9:
      return {"the coordinator fails", [=](FakeCluster& c) { c.FailPod("adult-coordinator", 1); }};
    case 10:
      return {"elasticity", [=](FakeCluster& c) { c.SetSpec({{"elasticity", {{"enabled", on}}}}); }};
    default:
      return RandomLoss(random);
  }
}

// For pool a's prices by zone.
Event RandomZoneEvent(std::mt19937& random) {
  const std::string number = std::to_string(random() % 2);
  const double price = 0.25 * static_cast<double>(1 + random() % 8);
  const bool on = random() % 2 == 0;
  switch (random() % 4) {
    case 0:
      return {"a price in z" + number, [=](FakeCluster& c) { c.pools["a"].zone_prices["z" + number] = price; }};
    case 1:
      return {"z" + number + (on ? " is" : " is not") + " available", [=](FakeCluster& c) {
                c.pools["a"].unavailable_zones.erase("z" + number);
                if (!on) c.pools["a"].unavailable_zones.insert("z" + number);
              }};
    case 2:
      return {"a-" + number + (on ? " takes" : " does not take") + " pods", [=](FakeCluster& c) {
                c.blocked_nodes.erase("a-" + number);
                if (!on) c.blocked_nodes.insert("a-" + number);
              }};
    default:
      return {"units of a-" + number, [=](FakeCluster& c) { c.node_units["a-" + number] = on ? 1 : 2; }};
  }
}

// A slow planner, slow coordinators, slow logs.
void SlowDown(std::mt19937& random, FakeCluster& cluster) {
  for (const char* what : {"ask for a plan", "send plan", "suspend training", "drain", "read log"}) {
    if (random() % 2 == 0) cluster.delays[what] = base::milliseconds(1 + random() % 40000);
  }
}

// Passes and steps of the cluster in a random order.
void RunForAWhile(FakeCluster& cluster, std::mt19937& random) {
  for (auto left = random() % 6; left > 0; --left) {
    if (random() % 2 == 0) cluster.StepCluster();
    if (random() % 2 == 0) cluster.Pass();
    if (random() % 4 == 0) cluster.Advance(base::milliseconds(random() % 20000));
  }
}

class LifecycleProperty : public testing::TestWithParam<uint32_t> {
 protected:
  // All events, in this order, and then rest.
  static std::string EndOf(const std::vector<Event>& events, std::mt19937& random, bool restarts,
                           FakeCluster& cluster) {
    cluster.SetSpec({{"runPolicy", {{"backoffLimit", 1000}}}});
    EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
    for (const Event& event : events) {
      event.second(cluster);
      RunForAWhile(cluster, random);
      if (restarts && random() % 2 == 0) cluster.RestartOperator();
    }
    EXPECT_TRUE(cluster.Settle()) << "no rest:\n" << cluster.trace();
    EXPECT_THAT(cluster.violations(), IsEmpty());
    return cluster.Digest();
  }

  static void ComeToRestAfter(const std::function<Event(std::mt19937&)>& any, std::mt19937& random,
                              FakeCluster& cluster) {
    std::string names;
    for (int i = 0; i < 12; ++i) {
      const Event event = any(random);
      names += event.first + "; ";
      event.second(cluster);
      RunForAWhile(cluster, random);
      if (random() % 6 == 0) cluster.RestartOperator();
    }
    cluster.failures.clear();
    cluster.delays.clear();
    cluster.blocked_nodes.clear();
    cluster.planner = nullptr;
    EXPECT_TRUE(cluster.Settle()) << "seed " << GetParam() << ": " << names << "\n" << cluster.trace();
    EXPECT_THAT(cluster.violations(), IsEmpty()) << "seed " << GetParam() << ": " << names;
    cluster.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    EXPECT_TRUE(cluster.Settle()) << "seed " << GetParam() << "\n" << cluster.trace();
    EXPECT_THAT(cluster.pod_names(), IsEmpty());
    EXPECT_THAT(cluster.violations(), IsEmpty()) << "seed " << GetParam() << ": " << names;
  }
};

TEST_P(LifecycleProperty, TheSameEventsInAnyOrderEndInTheSameCluster) {
  std::mt19937 random(GetParam());
  std::vector<Event> events;
  for (int i = 0; i < 6; ++i) events.push_back(RandomLoss(random));
  std::string names;
  for (const Event& event : events) names += event.first + "; ";
  FakeCluster first;
  const std::string end = EndOf(events, random, false, first);
  for (int i = 0; i < 3; ++i) {
    std::shuffle(events.begin(), events.end(), random);
    FakeCluster cluster;
    const bool restarts = i > 0;
    EXPECT_EQ(EndOf(events, random, restarts, cluster), end)
        << "seed " << GetParam() << (restarts ? ", with restarts of the operator: " : ": ") << names << "\n"
        << cluster.trace();
  }
}

TEST_P(LifecycleProperty, AnEmptyMemoryChangesNothingInAClusterAtRest) {
  std::mt19937 random(GetParam());
  std::vector<Event> events;
  for (int i = 0; i < 4; ++i) events.push_back(RandomLoss(random));
  FakeCluster cluster;
  const std::string end = EndOf(events, random, true, cluster);
  const int64_t generation = cluster.stored_plan()->plan.generation;
  const std::set<std::string> pods = cluster.pod_names();
  cluster.RestartOperator();
  ASSERT_TRUE(cluster.Settle()) << "seed " << GetParam() << "\n" << cluster.trace();
  EXPECT_EQ(cluster.Digest(), end) << "seed " << GetParam() << "\n" << cluster.trace();
  EXPECT_EQ(cluster.pod_names(), pods);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, generation);
}

TEST_P(LifecycleProperty, AnyEventsComeToRestSafely) {
  FakeCluster cluster;
  std::mt19937 random(GetParam());
  ComeToRestAfter(RandomEvent, random, cluster);
}

TEST_P(LifecycleProperty, AnyEventsComeToRestSafelyWhereAnswersAreSlow) {
  FakeCluster cluster;
  std::mt19937 random(GetParam());
  SlowDown(random, cluster);
  ComeToRestAfter(RandomEvent, random, cluster);
}

TEST_P(LifecycleProperty, SlowAnswersEndInTheSameClusterAsFastOnes) {
  std::mt19937 random(GetParam());
  std::vector<Event> events;
  for (int i = 0; i < 6; ++i) events.push_back(RandomLoss(random));
  std::string names;
  for (const Event& event : events) names += event.first + "; ";
  FakeCluster fast;
  const std::string end = EndOf(events, random, false, fast);
  for (const bool restarts : {false, true}) {
    FakeCluster slow;
    SlowDown(random, slow);
    EXPECT_EQ(EndOf(events, random, restarts, slow), end) << "seed " << GetParam() << ": " << names << "\n"
                                                          << slow.trace();
  }
}

TEST_P(LifecycleProperty, AnyEventsOfZonesComeToRestSafely) {
  FakeCluster cluster;
  cluster.pools["a"].zone_prices = {{"z0", 1}, {"z1", 1.25}};
  std::mt19937 random(GetParam());
  const auto any = [](std::mt19937& r) { return r() % 2 == 0 ? RandomZoneEvent(r) : RandomEvent(r); };
  ComeToRestAfter(any, random, cluster);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LifecycleProperty, testing::Range(kFirstSeed, kFirstSeed + kSeeds),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace medley::ops::lifecycle
