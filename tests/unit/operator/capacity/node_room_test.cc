#include "operator/capacity/node_room.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace medley::ops {
namespace {

NodeFacts Node(const std::string& name, int64_t cpu, const std::string& kind = "a") {
  NodeFacts node;
  node.name = name;
  node.labels = {{"kind", kind}};
  node.allocatable = {{"cpu", cpu}};
  return node;
}

std::shared_ptr<const PodDemand> Demand(int64_t cpu, const std::string& kind = "a") {
  auto demand = std::make_shared<PodDemand>();
  demand->amounts.requests = {{"cpu", cpu}};
  demand->node_selector = {{"kind", kind}};
  return demand;
}

kube::Key Pod(int number) { return {"ns", "p" + std::to_string(number)}; }

TEST(NodeRoomTest, AWaitingPodTakesRoomUntilItIsBoundElsewhere) {
  NodeRoom room;
  room.Put(Node("n1", 4));
  room.Put(Node("n2", 2));
  room.Wait(Pod(1), Demand(2));
  EXPECT_EQ(room.Fits(*Demand(2)), 2);
  EXPECT_EQ(room.FitsWithout(*Demand(2), {Pod(1)}), 3);
  room.Remove(Pod(1));
  room.Bind(Pod(1), "n2", {{"cpu", 2}});
  EXPECT_EQ(room.Fits(*Demand(2)), 2);
  EXPECT_EQ(room.Fits(*Demand(4)), 1);
}

TEST(NodeRoomTest, AWaitingPodThatNoNodeCanTakeBlocksNobody) {
  NodeRoom room;
  room.Put(Node("n1", 4));
  room.Wait(Pod(1), Demand(2, "b"));
  EXPECT_FALSE(room.HasPlace(Pod(1)));
  EXPECT_EQ(room.Fits(*Demand(2)), 2);
  room.Put(Node("n2", 2, "b"));
  EXPECT_TRUE(room.HasPlace(Pod(1)));
  EXPECT_EQ(room.Fits(*Demand(2, "b")), 0);
}

TEST(NodeRoomTest, APodOfAnotherOwnerDisplacesOneThatWaits) {
  NodeRoom room;
  room.Put(Node("n1", 2));
  room.Put(Node("n2", 2));
  room.Wait(Pod(1), Demand(2));
  EXPECT_EQ(room.Fits(*Demand(2)), 1);
  room.Bind(Pod(2), "n1", {{"cpu", 2}});  // where the waiting pod was counted
  EXPECT_EQ(room.Fits(*Demand(2)), 0);
  EXPECT_TRUE(room.HasPlace(Pod(1)));
  room.Erase("n2");
  EXPECT_FALSE(room.HasPlace(Pod(1)));
  room.Remove(Pod(2));
  EXPECT_TRUE(room.HasPlace(Pod(1)));
}

TEST(NodeRoomTest, TheLongestWaitingPodIsPlacedFirst) {
  NodeRoom room;
  for (int i = 1; i <= 3; ++i) room.Wait(Pod(i), Demand(2));
  room.Put(Node("n1", 4));
  EXPECT_TRUE(room.HasPlace(Pod(1)));
  EXPECT_TRUE(room.HasPlace(Pod(2)));
  EXPECT_FALSE(room.HasPlace(Pod(3)));
}

// Random changes. Whatever the order: no pod that waits has a place where there is none, and none is left without a
// place where there is one.
class RandomRoom {
 public:
  explicit RandomRoom(uint64_t seed) : rng_(seed) {}

  void Change() {
    const std::string node = "n" + std::to_string(rng_.Below(5));
    const kube::Key pod = Pod(static_cast<int>(rng_.Below(25)));
    switch (rng_.Below(6)) {
      case 0:
        nodes_[node] = Node(node, static_cast<int64_t>(rng_.Below(12)), Kind());
        room_.Put(nodes_[node]);
        break;
      case 1:
        nodes_.erase(node);
        room_.Erase(node);
        break;
      case 2:
        Remove(pod);
        break;
      case 3:
        Remove(pod);
        bound_[pod] = {node, static_cast<int64_t>(1 + rng_.Below(4))};
        room_.Bind(pod, node, {{"cpu", bound_[pod].second}});
        break;
      default:
        Remove(pod);
        waiting_[pod] = Demand(static_cast<int64_t>(1 + rng_.Below(4)), Kind());
        room_.Wait(pod, waiting_[pod]);
    }
  }

  void Check() {
    // Free CPU beside the bound pods, by kind; and what the pods with a place take.
    std::map<std::string, int64_t> free;
    int64_t placed = 0;
    for (const auto& [name, node] : nodes_) {
      int64_t left = node.allocatable.at("cpu");
      for (const auto& [pod, bound] : bound_) left -= bound.first == name ? bound.second : 0;
      free[node.labels.at("kind")] += std::max<int64_t>(0, left);
    }
    for (const auto& [pod, demand] : waiting_) {
      const std::string kind = demand->node_selector.at("kind");
      if (room_.HasPlace(pod)) {
        placed += demand->amounts.requests.at("cpu");
        free[kind] -= demand->amounts.requests.at("cpu");
      } else {
        EXPECT_EQ(room_.Fits(*demand), 0) << pod.name << " waits beside free room";
      }
    }
    for (const auto& [kind, left] : free) {
      EXPECT_GE(left, 0) << "more than the nodes have";
      EXPECT_EQ(room_.Fits(*Demand(1, kind)), left);
    }
    places_ += placed > 0 ? 1 : 0;
  }
  int places() const { return places_; }

 private:
  std::string Kind() { return rng_.Below(2) == 0 ? "a" : "b"; }
  void Remove(const kube::Key& pod) {
    bound_.erase(pod);
    waiting_.erase(pod);
    room_.Remove(pod);
  }

  base::Rng rng_;
  NodeRoom room_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<kube::Key, std::pair<std::string, int64_t>> bound_;
  std::map<kube::Key, std::shared_ptr<const PodDemand>> waiting_;
  int places_ = 0;
};

TEST(NodeRoomTest, RoomIsGivenOnceWhateverTheOrder) {
  int places = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRoom room(seed);
    for (int step = 0; step < 100; ++step) {
      room.Change();
      if (step % 3 == 0) room.Check();
      if (testing::Test::HasFailure()) return;
    }
    places += room.places();
  }
  EXPECT_GT(places, 1000);
}

}  // namespace
}  // namespace medley::ops
