// CapacityView against a simulation that places units one by one, over random clusters that change.
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "operator/capacity/capacity_view.h"
#include "operator/capacity/trim.h"
#include "tests/unit/operator/capacity/naive_cluster.h"

namespace medley::ops {
namespace {

using kube::Json;

class World {
 public:
  explicit World(uint64_t seed) : rng_(seed) {}

  // Makes one random change, to the naive cluster and to the view.
  void Change() {
    const uint64_t what = rng_.Below(10);
    if (what < 3) {
      PutNode();
    } else if (what < 8) {
      PutPod();
    } else if (what == 8) {
      Remove();
    } else {
      PutQuota();
    }
  }

  Json Unit() {
    Json pod = RandomPod();
    Json& spec = pod["spec"];
    spec.erase("nodeName");
    pod["metadata"]["name"] = "unit";
    if (Chance(3)) spec["nodeSelector"] = {{"zone", Pick({"a", "b"})}};
    if (Chance(2)) {
      Json toleration = {{"operator", Pick({"Exists", "Equal"})}, {"key", Pick({"gpu", "spot"})}};
      if (toleration["operator"] == "Equal") toleration["value"] = Pick({"x", "y"});
      if (Chance(3)) toleration["effect"] = Pick({"NoSchedule", "NoExecute"});
      spec["tolerations"] = Json::array({toleration});
      if (Chance(5)) spec["tolerations"] = Json::array({{{"operator", "Exists"}}});
    }
    if (Chance(3)) spec["affinity"] = Affinity();
    return pod;
  }

  ResourcePool Pool() {
    ResourcePool pool;
    pool.name = "p";
    pool.limit = static_cast<int>(rng_.Below(40));
    return pool;
  }

  const CapacityView& view() const { return view_; }
  const NaiveCluster& naive() const { return naive_; }

 private:
  bool Chance(uint64_t n) { return rng_.Below(n) == 0; }
  std::string Pick(std::initializer_list<const char*> of) { return *(of.begin() + rng_.Below(of.size())); }

  Json Resources(int scale) {
    const auto some = [&](uint64_t n) { return rng_.Below(n) + 1; };
    Json requests = {{"cpu", std::to_string(some(20) * 100 * static_cast<uint64_t>(scale)) + "m"},
                     {"memory", std::to_string(some(8) * 256 * static_cast<uint64_t>(scale)) + "Mi"}};
    if (Chance(3)) requests["nvidia.com/gpu"] = std::to_string(some(2));
    return Chance(4) ? Json{{"limits", requests}} : Json{{"requests", requests}};
  }

  Json RandomPod() {
    Json pod = {{"metadata", {{"name", "pod" + std::to_string(rng_.Below(30))}, {"namespace", "ns"}}},
                {"spec", {{"containers", Json::array()}}},
                {"status", {{"phase", "Running"}}}};
    Json& spec = pod["spec"];
    for (uint64_t i = 0; i <= rng_.Below(2); ++i) {
      spec["containers"].push_back({{"name", "c" + std::to_string(i)}, {"resources", Resources(1)}});
    }
    for (uint64_t i = 0; i < rng_.Below(3); ++i) {
      Json init = {{"name", "i" + std::to_string(i)}, {"resources", Resources(1)}};
      if (Chance(2)) init["restartPolicy"] = "Always";
      spec["initContainers"].push_back(init);
    }
    if (Chance(5)) spec["overhead"] = {{"cpu", "250m"}, {"memory", "64Mi"}};
    return pod;
  }

  Json Affinity() {
    Json terms = Json::array();
    for (uint64_t t = 0; t <= rng_.Below(2); ++t) {
      Json expressions = Json::array();
      for (uint64_t e = 0; e <= rng_.Below(2); ++e) {
        const std::string op = Pick({"In", "NotIn", "Exists", "DoesNotExist", "Gt"});
        Json one = {{"key", op == "Gt" ? "size" : Pick({"zone", "kind"})}, {"operator", op}};
        if (op == "In" || op == "NotIn") one["values"] = Json::array({Pick({"a", "b"}), "c"});
        if (op == "Gt") one["values"] = Json::array({Pick({"1", "3"})});
        expressions.push_back(one);
      }
      terms.push_back({{"matchExpressions", expressions}});
    }
    return {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}}};
  }

  void PutNode() {
    Json node = {{"metadata",
                  {{"name", "node" + std::to_string(rng_.Below(8))},
                   {"labels", {{"zone", Pick({"a", "b"})}, {"size", std::to_string(rng_.Below(5))}}}}},
                 {"spec", Json::object()},
                 {"status",
                  {{"allocatable",
                    {{"cpu", std::to_string(rng_.Below(32)) + "500m"},
                     {"memory", std::to_string(rng_.Below(32) + 1) + "Gi"},
                     {"pods", std::to_string(rng_.Below(20))}}},
                   {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
    if (Chance(3)) node["metadata"]["labels"]["kind"] = Pick({"a", "b"});
    if (Chance(2)) node["status"]["allocatable"]["nvidia.com/gpu"] = std::to_string(rng_.Below(9));
    if (Chance(8)) node["spec"]["unschedulable"] = true;
    if (Chance(8)) node["status"]["conditions"][0]["status"] = Pick({"False", "Unknown"});
    Json taints = Json::array();
    if (Chance(3)) {
      taints.push_back({{"key", Pick({"gpu", "spot"})},
                        {"value", Pick({"x", "y"})},
                        {"effect", Pick({"NoSchedule", "NoExecute", "PreferNoSchedule"})}});
    }
    if (Chance(8)) taints.push_back({{"key", "karpenter.sh/disrupted"}, {"effect", "NoSchedule"}});
    if (!taints.empty()) node["spec"]["taints"] = taints;
    naive_.nodes[node["metadata"]["name"]] = node;
    kube::Object object(node);
    TrimNode(object);
    view_.PutNode(object);
  }

  void PutPod() {
    Json pod = RandomPod();
    // A unit that waits for a node: see node_room_test.cc.
    const bool of_job = Chance(2);
    if (of_job || !Chance(6)) pod["spec"]["nodeName"] = "node" + std::to_string(rng_.Below(8));
    if (Chance(8)) pod["status"]["phase"] = Pick({"Succeeded", "Failed"});
    if (of_job) {
      const std::string role = Pick({"trainer", "coordinator", "profiler"});
      const std::string job = Pick({"mine", "other"});
      pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "medley.dev/v1alpha1"},
                                                         {"kind", "TrainingJob"},
                                                         {"name", job},
                                                         {"uid", job},
                                                         {"controller", true}}});
      pod["metadata"]["labels"] = {
          {"medley.dev/job-name", job}, {"medley.dev/role", role}, {"medley.dev/pool", Pick({"p", "q"})}};
    }
    naive_.pods[pod["metadata"]["name"]] = pod;
    kube::Object object(pod);
    TrimPod(object);
    view_.PutPod(object);
  }

  void Remove() {
    const std::string node = "node" + std::to_string(rng_.Below(8));
    const std::string pod = "pod" + std::to_string(rng_.Below(30));
    if (Chance(2)) {
      naive_.nodes.erase(node);
      view_.EraseNode(node);
    } else {
      naive_.pods.erase(pod);
      view_.ErasePod({"ns", pod});
    }
  }

  void PutQuota() {
    Json hard = {{"requests.cpu", std::to_string(rng_.Below(60) + 20)}};
    Json used = {{"requests.cpu", "0"}};
    if (Chance(2)) {
      hard["pods"] = std::to_string(rng_.Below(40));
      used["pods"] = "0";
    }
    // Counts use as the quota controller does, over all pods of the namespace.
    double cpu = 0;
    int count = 0;
    for (const auto& [name, pod] : naive_.pods) {
      if (pod["status"]["phase"] != "Running") continue;
      cpu += static_cast<double>(AmountOf(AmountsOf(kube::Object(pod)).requests, "cpu"));
      ++count;
    }
    used["requests.cpu"] = std::to_string(static_cast<int64_t>(cpu)) + "m";
    if (hard.contains("pods")) used["pods"] = std::to_string(count);
    const Json quota = {{"metadata", {{"name", "q"}, {"namespace", "ns"}}},
                        {"status", {{"hard", hard}, {"used", used}}}};
    naive_.quotas["q"] = quota;
    view_.PutQuota(kube::Object(quota));
  }

  base::Rng rng_;
  NaiveCluster naive_;
  CapacityView view_;
};

TEST(CapacityPropertyTest, AgreesWithPlacingUnitsOneByOne) {
  int64_t answers = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int step = 0; step < 60; ++step) {
      world.Change();
      if (step % 5 != 4) continue;
      const Json unit = world.Unit();
      const ResourcePool pool = world.Pool();
      const PodDemand demand = world.view().Demand(kube::Object(unit));
      // The quota may have been counted earlier, so status.used may be lower than the current use.
      const JobUnits job = world.view().UnitsFor(pool, demand, {"ns", "mine"});
      ASSERT_EQ(job.units, world.naive().Place(unit, pool.limit, pool.name, "mine"))
          << "step " << step << ", bound by " << job.bound << "\n"
          << unit.dump(2);
      ASSERT_EQ(world.view().UnitsOf(pool, demand).free, world.naive().Place(unit, pool.limit, pool.name, ""));
      answers += job.units;
    }
  }
  EXPECT_GT(answers, 1000);  // fails if nearly all random clusters are full
}

}  // namespace
}  // namespace medley::ops
