// Hostile edits in every phase of a job: random merge patches of the job's spec and status and of the pools, as an API
// server without validation would store them. Properties:
//   1. No pass crashes, throws, or goes on without end (FakeCluster::Pass), and none does what must never be done
//      (FakeCluster::violations).
//   2. When the patches are taken back, the job comes to the state that a job without the patches reaches, unless one
//      of them has ended the job for good, as a time to live or a deadline may.
#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "common/base/status.h"
#include "common/base/testing/soak.h"
#include "operator/api/resources.h"
#include "tests/unit/operator/api/manifest_cases.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::IsEmpty;

constexpr uint32_t kFirstHostileSeed = 20261122;
const auto kSeedsOfPhase = static_cast<uint32_t>(base::Rounds(2, 5));
constexpr int kPatches = 8;

struct Phase {
  const char* name;
  std::function<void(FakeCluster&)> reach;
};

void ReachRunning(FakeCluster& cluster) { ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace(); }

const std::vector<Phase>& Phases() {
  static const std::vector<Phase> phases = {
      {"NoPlan",
       [](FakeCluster& c) {
         c.planner = [](const model::PlanRequest&) { return AskForPlan::Outcome{model::PlanResult(), false}; };
         c.PassFor(base::seconds(30));
         ASSERT_EQ(c.Reason(kPlannedCondition), "False/Infeasible") << c.trace();
       }},
      {"Profiling",
       [](FakeCluster& c) {
         c.slow_profilers = {"a", "b", "c"};
         c.PassFor(base::seconds(5));
         ASSERT_EQ(c.Reason(kPlannedCondition), "Unknown/Profiling") << c.trace();
       }},
      {"Running", ReachRunning},
      {"Rescaling",
       [](FakeCluster& c) {
         ReachRunning(c);
         c.pools["a"].limit = 0;
         for (int i = 0; i < 60 && c.stored_plan()->plan.generation == 1; ++i) c.PassFor(base::seconds(1));
         ASSERT_EQ(c.Reason(kRescalingCondition).substr(0, 4), "True") << c.trace();
       }},
      {"Suspended",
       [](FakeCluster& c) {
         ReachRunning(c);
         c.SetSpec({{"runPolicy", {{"suspend", true}}}});
         ASSERT_TRUE(c.Settle()) << c.trace();
       }},
      {"Recovering",
       [](FakeCluster& c) {
         ReachRunning(c);
         c.FailPod("adult-0-a-0", 137);
         c.FailPod("adult-coordinator", 1);
         c.Pass();
       }},
      {"Finished",
       [](FakeCluster& c) {
         ReachRunning(c);
         c.coordinator().phase = JobPhase::kComplete;
         ASSERT_TRUE(c.Settle()) << c.trace();
         ASSERT_TRUE(c.status().conditions.IsTrue(kCompleteCondition)) << c.trace();
       }},
      {"BeingDeleted",
       [](FakeCluster& c) {
         ReachRunning(c);
         c.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
         c.Pass();
       }},
  };
  return phases;
}

// Paths of all fields of a part of a CRD, as JSON pointers below that part; fields of list items are not among them.
void AddPaths(const Json& schema, const Json::json_pointer& at, std::vector<Json::json_pointer>& paths) {
  const Json fields = schema.value("properties", Json::object());
  for (const auto& [name, field] : fields.items()) {
    paths.push_back(at / name);
    AddPaths(field, at / name, paths);
  }
  if (schema.contains("additionalProperties") || schema.contains("x-kubernetes-preserve-unknown-fields")) {
    for (const char* name : {"x", "containers", "nodeName", "volumes", "emptyDir", "cpu"}) paths.push_back(at / name);
  }
}

std::vector<Json::json_pointer> PathsOf(const std::string& crd, const std::string& part) {
  const Json schema = LoadYaml("deploy/crds/" + crd);
  std::vector<Json::json_pointer> paths = {Json::json_pointer("/unknown")};
  AddPaths(schema.at(nlohmann::json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties")).at(part),
           Json::json_pointer(), paths);
  return paths;
}

Json HostileValue(std::mt19937& random) {
  static const std::vector<Json> values = [] {
    std::vector<Json> made = {nullptr,
                              true,
                              false,
                              0,
                              1,
                              -1,
                              2,
                              1.5,
                              -0.0,
                              1e308,
                              -1e308,
                              1e-308,
                              INT64_MIN,
                              INT64_MAX,
                              uint64_t{1} << 63,
                              UINT64_MAX,
                              int64_t{1} << 31,
                              "",
                              "0",
                              "-1",
                              "NaN",
                              "inf",
                              "1e308",
                              "x",
                              "10%",
                              "101%",
                              "0s",
                              "5m",
                              "99999999999999h",
                              "-5m",
                              "\xF0\x9F\x92\xA5",
                              std::string("a\0b", 3),
                              "../../etc",
                              "a b\n",
                              "Autoscaled",
                              "Volcano",
                              "All",
                              "None",
                              Json::object(),
                              Json::array(),
                              Json::parse(R"([[]])"),
                              Json::parse(R"([null])"),
                              Json::parse(R"([1, "a", {}])"),
                              Json::parse(R"({"a": {"b": [1]}})"),
                              Json::parse(R"([{"type": "Planned", "status": 7}, {"type": 1}, null])"),
                              Json::parse(R"([{"name": 1}])"),
                              Json::parse(R"(["a", "a"])"),
                              Json::parse(R"(["nope"])")};
    made.emplace_back(std::string(70'000, 'x'));
    made.push_back(Json::parse(std::string(2000, '[') + std::string(2000, ']')));
    made.push_back(Json(3000, 1));
    return made;
  }();
  return values[random() % values.size()];
}

// A merge patch that sets one field.
Json PatchOf(const std::vector<Json::json_pointer>& paths, std::mt19937& random) {
  Json patch;
  patch[paths[random() % paths.size()]] = HostileValue(random);
  return patch;
}

std::string Shown(const Json& patch) {
  const std::string text = kube::Dump(patch);
  return text.size() > 160 ? text.substr(0, 157) + "..." : text;
}

void ReactForAWhile(FakeCluster& cluster, std::mt19937& random) {
  for (auto left = 1 + random() % 6; left > 0; --left) {
    if (random() % 2 == 0) cluster.StepCluster();
    cluster.Pass();
    if (random() % 3 == 0) cluster.Advance(base::milliseconds(random() % 20000));
  }
  if (random() % 6 == 0) cluster.RestartOperator();
}

// What a job without hostile patches has in the end as well. Not in which pool: a job moves back only for a gain.
std::string StateOf(const FakeCluster& cluster) {
  std::string state;
  std::map<std::string, int> pods;
  for (const auto& [name, object] : cluster.pods()) {
    ++pods[object.label(kRoleLabel) + " " + object.String("/status/phase") + (object.deleting() ? " terminating" : "")];
  }
  for (const auto& [what, count] : pods) state += fmt::format("{} {}\n", count, what);
  const JobStatus status = cluster.status();
  for (const char* type :
       {kPodsReadyCondition, kRunningCondition, kSuspendedCondition, kCompleteCondition, kFailedCondition}) {
    if (status.conditions.IsTrue(type)) state += std::string(type) + "\n";
  }
  const Condition* planned = status.conditions.Find(kPlannedCondition);
  if (planned != nullptr && planned->status != ConditionStatus::kTrue)
    state += "not planned: " + planned->reason + "\n";
  state += fmt::format("phase {}, {} replicas, {} units reserved, {} plan, finalizer: {}\n", status.Phase(),
                       status.replicas, cluster.reserved().size(), cluster.stored_plan() ? "a" : "no",
                       HasFinalizer(kube::Object(cluster.job)));
  return state;
}

class HostileProperty : public testing::TestWithParam<std::tuple<size_t, uint32_t>> {
 protected:
  void SetUp() override { phase_.reach(cluster_); }

  // Patches, passes after each, and the patches taken back.
  void Attack(const std::function<std::string()>& patch, const std::function<void()>& take_back) {
    std::string patches;
    for (int i = 0; i < kPatches; ++i) {
      patches += patch() + "\n";
      SCOPED_TRACE("phase " + std::string(phase_.name) + ", seed " + std::to_string(seed_) + ", patches:\n" + patches);
      ASSERT_NO_THROW(ReactForAWhile(cluster_, random_));
      ASSERT_THAT(cluster_.violations(), IsEmpty());
    }
    SCOPED_TRACE("phase " + std::string(phase_.name) + ", seed " + std::to_string(seed_) + ", patches:\n" + patches);
    take_back();
    ASSERT_TRUE(cluster_.Settle()) << "no rest:\n" << cluster_.trace();
    ASSERT_THAT(cluster_.violations(), IsEmpty());
    FakeCluster untouched;
    phase_.reach(untouched);
    ASSERT_TRUE(untouched.Settle()) << untouched.trace();
    const bool ended = cluster_.status().finished() || cluster_.job["metadata"].contains("deletionTimestamp");
    const bool ends = untouched.status().finished() || untouched.job["metadata"].contains("deletionTimestamp");
    if (ended && !ends) return;  // a patch ended the job for good
    EXPECT_EQ(StateOf(cluster_), StateOf(untouched)) << cluster_.trace();
  }
  void SetSpec(const Json& spec) {
    cluster_.job["spec"] = spec;
    cluster_.SetSpec(Json::object());  // another metadata.generation
  }

  const Phase& phase_ = Phases()[std::get<0>(GetParam())];
  const uint32_t seed_ = std::get<1>(GetParam());
  std::mt19937 random_{seed_};
  FakeCluster cluster_;
};

TEST_P(HostileProperty, PatchesOfTheSpecAreSurvived) {
  static const std::vector<Json::json_pointer> paths = PathsOf("trainingjobs.yaml", "spec");
  const Json spec = cluster_.job["spec"];
  const auto patch = [&] {
    if (random_() % 3 == 0) SetSpec(spec);
    if (random_() % 20 == 0) {
      SetSpec(HostileValue(random_));
      return std::string("spec: another value");
    }
    if (!cluster_.job["spec"].is_object()) SetSpec(spec);
    const Json change = PatchOf(paths, random_);
    cluster_.SetSpec(change);
    return "spec: " + Shown(change);
  };
  Attack(patch, [&] { SetSpec(spec); });
}

TEST_P(HostileProperty, PatchesOfTheStatusAreSurvived) {
  static const std::vector<Json::json_pointer> paths = PathsOf("trainingjobs.yaml", "status");
  const Json status = cluster_.job["status"];
  const auto patch = [&] {
    const Json change = random_() % 10 == 0 ? HostileValue(random_) : PatchOf(paths, random_);
    kube::MergePatch(cluster_.job["status"], change);
    return "status: " + Shown(change);
  };
  Attack(patch, [&] {
    cluster_.job["status"] = status;
    cluster_.RestartOperator();  // which reads the status
  });
}

TEST_P(HostileProperty, PatchesOfPoolsAreSurvived) {
  static const std::vector<Json::json_pointer> paths = PathsOf("resourcepools.yaml", "spec");
  const auto patch = [&] {
    const std::string pool(1, static_cast<char>('a' + random_() % 3));
    if (random_() % 3 == 0) cluster_.pool_patches.erase(pool);
    const Json change = random_() % 10 == 0 ? HostileValue(random_) : PatchOf(paths, random_);
    kube::MergePatch(cluster_.pool_patches[pool]["spec"], change);
    return "pool " + pool + ": " + Shown(change);
  };
  Attack(patch, [&] { cluster_.pool_patches.clear(); });
}

INSTANTIATE_TEST_SUITE_P(Phases, HostileProperty,
                         testing::Combine(testing::Range(size_t{0}, Phases().size()),
                                          testing::Range(kFirstHostileSeed, kFirstHostileSeed + kSeedsOfPhase)),
                         [](const auto& test) {
                           return std::string(Phases()[std::get<0>(test.param)].name) +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace medley::ops::lifecycle
