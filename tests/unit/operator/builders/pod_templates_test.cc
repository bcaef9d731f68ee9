// The templates of a job, of its roles and of a pool: which one wins, and what none of them can change.
#include <gmock/gmock.h>

#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

class PodTemplatesTest : public testing::Test {
 protected:
  PodTemplatesTest() {
    job_ = SampleJobJson();
    job_["spec"]["template"] = Json::object();
    pool_ = SamplePool().object.json();
  }
  // By role: coordinator, trainer, server, profiler.
  std::map<std::string, kube::Object> Pods() {
    const auto pool = ResourcePool::FromObject(kube::Object(pool_));
    EXPECT_THAT(pool, base::IsOk());
    std::map<std::string, kube::Object> pods;
    for (const kube::Object& pod : EachKindOfPod(ReadJob(job_), *pool, settings_)) {
      pods[pod.label(kRoleLabel)] = pod;
    }
    return pods;
  }
  static const Json& Worker(const kube::Object& pod) { return pod.At("/spec/containers/0"); }
  static std::string Env(const kube::Object& pod, const std::string& name) {
    for (const Json& entry : Worker(pod)["env"]) {
      if (entry["name"] == name) return entry.value("value", "");
    }
    return "";
  }

  Json job_;
  Json pool_;
  WorkerSettings settings_{"i", 7070, 0};
};

TEST_F(PodTemplatesTest, EachRoleTakesItsOwnAndProfilersThatOfTrainers) {
  for (const char* role : {"coordinator", "servers", "trainers"}) {
    job_["spec"]["template"][role] = {{"metadata", {{"labels", {{"of", role}}}, {"annotations", {{"of", role}}}}},
                                      {"spec",
                                       {{"nodeSelector", {{"for", role}}},
                                        {"priorityClassName", role},
                                        {"serviceAccountName", role},
                                        {"securityContext", {{"fsGroup", 7}}},
                                        {"volumes", {{{"name", "scratch"}, {"emptyDir", Json::object()}}}},
                                        {"containers",
                                         {{{"env", {{{"name", "ROLE"}, {"value", role}}}},
                                           {"volumeMounts", {{{"name", "scratch"}, {"mountPath", "/scratch"}}}}}}}}}};
  }
  const std::map<std::string, std::string> expected = {
      {"coordinator", "coordinator"}, {"server", "servers"}, {"trainer", "trainers"}, {"profiler", "trainers"}};
  const auto pods = Pods();
  ASSERT_EQ(pods.size(), 4u);
  for (const auto& [role, pod] : pods) {
    SCOPED_TRACE(role);
    const std::string of = expected.at(role);
    EXPECT_EQ(pod.label("of"), of);
    EXPECT_EQ(pod.annotation("of"), of);
    EXPECT_EQ(pod.String("/spec/nodeSelector/for"), of);
    EXPECT_EQ(pod.String("/spec/priorityClassName"), of);
    EXPECT_EQ(pod.String("/spec/serviceAccountName"), of);
    EXPECT_EQ(pod.At("/spec/securityContext/fsGroup"), 7);
    EXPECT_EQ(pod.At("/spec/securityContext/runAsNonRoot"), true) << "the rest of restricted stays";
    EXPECT_EQ(Env(pod, "ROLE"), of);
    const Json mounts = Worker(pod)["volumeMounts"];
    EXPECT_TRUE(std::any_of(mounts.begin(), mounts.end(), [](const Json& m) { return m["mountPath"] == "/scratch"; }));
  }
}

TEST_F(PodTemplatesTest, CoordinatorLeavesItsResultWhereItsContainerSays) {
  for (const auto& [role, pod] : Pods()) {
    EXPECT_EQ(Env(pod, "MEDLEY_TERMINATION_LOG"), role == "coordinator" ? "/dev/termination-log" : "") << role;
    EXPECT_EQ(Worker(pod)["terminationMessagePolicy"], "FallbackToLogsOnError") << role;
  }
  job_["spec"]["template"]["coordinator"]["spec"]["containers"] = {
      {{"terminationMessagePath", "/run/end"}, {"terminationMessagePolicy", "File"}}};
  const kube::Object pod = Pods()["coordinator"];
  EXPECT_EQ(Env(pod, "MEDLEY_TERMINATION_LOG"), "/run/end");
  EXPECT_EQ(Worker(pod)["terminationMessagePath"], "/run/end");
  EXPECT_EQ(Worker(pod)["terminationMessagePolicy"], "File");
}

// Only what computes in a pool of class GPU takes the image for GPUs, and only a unit with a GPU must have one.
TEST_F(PodTemplatesTest, PoolsOfGpusTakeTheImageForGpus) {
  const auto image = [](const kube::Object& pod) { return Worker(pod)["image"].get<std::string>(); };
  for (const auto& [role, pod] : Pods()) {
    EXPECT_EQ(image(pod), "i") << role << ": without such an image";
    EXPECT_EQ(Env(pod, "MEDLEY_DEVICE"), "") << role;
  }
  settings_.gpu_image = "worker-cuda";
  for (const auto& [role, pod] : Pods()) {
    const bool computes = role == "trainer" || role == "profiler";
    EXPECT_EQ(image(pod), computes ? "worker-cuda" : "i") << role;
    EXPECT_EQ(Env(pod, "MEDLEY_DEVICE"), computes ? "cuda" : "") << role;
    EXPECT_EQ(Env(pod, "NVIDIA_DRIVER_CAPABILITIES"), computes ? "compute,utility" : "") << role;
    EXPECT_EQ(Env(pod, "MEDLEY_DEVICE_MEMORY"), "") << role << ": the pool does not say it";
  }
  pool_["spec"]["memory"] = "80Gi";
  EXPECT_EQ(Env(Pods().at("trainer"), "MEDLEY_DEVICE_MEMORY"), std::to_string(int64_t{80} << 30));
  EXPECT_EQ(Env(Pods().at("server"), "MEDLEY_DEVICE_MEMORY"), "");
  pool_["spec"]["unit"]["env"].push_back({{"name", "MEDLEY_DEVICE"}, {"value", "cpu"}});
  EXPECT_EQ(Env(Pods().at("trainer"), "MEDLEY_DEVICE"), "cpu") << "the pool may choose";
  job_["spec"]["template"] = {{"spec", {{"containers", {{{"image", "own"}}}}}}};
  EXPECT_EQ(image(Pods().at("trainer")), "own");
  job_["spec"]["template"] = Json::object();
  pool_["spec"]["unit"] = {{"resources", {{"cpu", "4"}}}};
  EXPECT_EQ(image(Pods().at("trainer")), "worker-cuda");
  EXPECT_EQ(Env(Pods().at("trainer"), "MEDLEY_DEVICE"), "") << "the process looks for a GPU itself";
  pool_["spec"]["class"] = "CPU";
  EXPECT_EQ(image(Pods().at("trainer")), "i");
}

TEST_F(PodTemplatesTest, RoleOverJobOverPool) {
  const auto level = [](const Json& names, const char* from) {
    Json spec = {{"containers", {{{"env", Json::array()}}}}};
    for (const Json& name : names) spec["containers"][0]["env"].push_back({{"name", name}, {"value", from}});
    Json labels = Json::object();
    for (const Json& name : names) labels[name.get<std::string>()] = from;
    return Json{{"metadata", {{"labels", labels}}}, {"spec", spec}};
  };
  pool_["spec"]["template"] = level({"A", "B", "C", "SPEED"}, "pool");
  job_["spec"]["template"] = level({"B", "C"}, "job");
  job_["spec"]["template"]["trainers"] = level({"C"}, "role");
  const auto pods = Pods();
  const kube::Object& trainer = pods.at("trainer");
  for (const auto& [name, from] : std::map<std::string, std::string>{{"A", "pool"}, {"B", "job"}, {"C", "role"}}) {
    EXPECT_EQ(Env(trainer, name), from);
    EXPECT_EQ(trainer.label(name), from);
  }
  EXPECT_EQ(Env(trainer, "SPEED"), "2") << "unit.env of the pool holds";
  EXPECT_EQ(Env(pods.at("server"), "C"), "job");
  EXPECT_EQ(Env(pods.at("coordinator"), "A"), "") << "the coordinator is on no pool";
}

TEST_F(PodTemplatesTest, NoTemplateLeavesThePoolOrItsUnit) {
  const Json hostile = Json::parse(R"({"spec": {
      "nodeName": "elsewhere",
      "nodeSelector": {"$patch": "replace", "gpu": "other", "zone": "z"},
      "tolerations": [{"$patch": "replace"}, {"key": "mine"}],
      "containers": [{"resources": {"requests": {"cpu": "64", "rdma/hca": 1},
                                    "limits": {"cpu": "64", "nvidia.com/gpu": 8, "rdma/hca": 1}}}]}})");
  for (const char* role : {"servers", "trainers"}) job_["spec"]["template"][role] = hostile;
  const auto pods = Pods();
  for (const char* role : {"trainer", "server", "profiler"}) {
    SCOPED_TRACE(role);
    const kube::Object& pod = pods.at(role);
    EXPECT_EQ(pod.At("/spec/nodeSelector"), (Json{{"gpu", "v100"}, {"zone", "z"}}));
    EXPECT_EQ(pod.At("/spec/tolerations"), Json::parse(R"([{"key": "mine"}, {"key": "gpu", "operator": "Exists"}])"));
    EXPECT_TRUE(pod.At("/spec/nodeName").is_null());
    for (const char* list : {"requests", "limits"}) {
      EXPECT_EQ(Worker(pod)["resources"][list], (Json{{"cpu", "4"}, {"nvidia.com/gpu", "1"}, {"rdma/hca", 1}}));
    }
  }
}

TEST_F(PodTemplatesTest, NoTemplateBreaksWhatMedleyNeeds) {
  const Json hostile = Json::parse(R"({
      "metadata": {"labels": {"medley.dev/profile": "p", "medley.dev/role": "no", "medley.dev/job-name": "other",
                              "app.kubernetes.io/managed-by": "me", "mine": "yes"},
                   "annotations": {"medley.dev/leader-term": "99"}},
      "spec": {"restartPolicy": "Always",
               "volumes": [{"name": "spec", "emptyDir": {}}],
               "containers": [{"$patch": "replace"},
                              {"name": "worker", "image": "mine", "command": ["numactl", "medley-worker"],
                               "args": ["--role=no"], "env": [{"name": "MEDLEY_SPEC_FILE", "value": "/x"}]}]}})");
  for (const char* role : {"coordinator", "servers", "trainers"}) job_["spec"]["template"][role] = hostile;
  for (const auto& [role, pod] : Pods()) {
    SCOPED_TRACE(role);
    EXPECT_EQ(pod.label(kRoleLabel), role);
    EXPECT_EQ(pod.label(kJobNameLabel), "adult");
    EXPECT_EQ(pod.label(kProfileLabel), "");
    EXPECT_EQ(pod.label("mine"), "yes");
    EXPECT_EQ(pod.label("app.kubernetes.io/managed-by"), "medley-operator");
    EXPECT_EQ(pod.annotation(kLeaderTermAnnotation), "");
    EXPECT_EQ(pod.String("/spec/restartPolicy"), role == "coordinator" ? "OnFailure" : "Never");
    EXPECT_EQ(Worker(pod)["args"], Json::array({"--role=" + role}));
    EXPECT_EQ(Worker(pod)["command"], (Json{"numactl", "medley-worker"}));
    EXPECT_EQ(Env(pod, "MEDLEY_SPEC_FILE"), "/etc/medley/spec/spec.json");
    const auto mounts_spec = [&](const Json& mount) {
      return mount["mountPath"] == "/etc/medley/spec" && mount["name"] == "spec";
    };
    const Json& mounts = Worker(pod)["volumeMounts"];
    EXPECT_TRUE(std::any_of(mounts.begin(), mounts.end(), mounts_spec));
    const Json& volumes = pod.At("/spec/volumes");
    EXPECT_TRUE(std::any_of(volumes.begin(), volumes.end(), [](const Json& volume) {
      return volume["name"] == "spec" && volume.value("configMap", Json::object()).value("name", "") == "adult-spec";
    }));
  }
}

// An injected sidecar may stand before the worker in the list of containers.
TEST_F(PodTemplatesTest, KubectlChoosesTheWorkerUnlessATemplateSaysOtherwise) {
  const std::string chosen = "kubectl.kubernetes.io/default-container";
  for (const auto& [role, pod] : Pods()) EXPECT_EQ(pod.annotation(chosen), "worker") << role;
  for (const char* role : {"coordinator", "servers", "trainers"}) {
    job_["spec"]["template"][role]["metadata"]["annotations"] = {{chosen, "mine"}};
  }
  for (const auto& [role, pod] : Pods()) EXPECT_EQ(pod.annotation(chosen), "mine") << role;
}

TEST_F(PodTemplatesTest, TheCoordinatorMayBePlacedAndSized) {
  job_["spec"]["template"]["coordinator"] = Json::parse(R"({"spec": {
      "nodeSelector": {"karpenter.sh/capacity-type": "on-demand"},
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["amd64"]}]}]}}},
      "containers": [{"resources": {"limits": {"memory": "2Gi"}}}]}})");
  const kube::Object pod = Pods().at("coordinator");
  EXPECT_EQ(pod.String("/spec/nodeSelector/karpenter.sh~1capacity-type"), "on-demand");
  EXPECT_EQ(Worker(pod)["resources"]["limits"], (Json{{"cpu", "1"}, {"memory", "2Gi"}}));
  EXPECT_TRUE(Pods().at("trainer").At("/spec/affinity").is_null());
}

TEST_F(PodTemplatesTest, AUnitOfAPoolCountsItsTemplate) {
  pool_["spec"]["template"] = Json::parse(R"({"spec": {"nodeSelector": {"disk": "ssd", "gpu": "no"},
      "containers": [{"name": "sidecar", "resources": {"requests": {"cpu": "1"}}}]}})");
  const auto pool = ResourcePool::FromObject(kube::Object(pool_));
  ASSERT_THAT(pool, base::IsOk());
  const Json spec = UnitPodSpec(*pool);
  EXPECT_EQ(spec["nodeSelector"], (Json{{"disk", "ssd"}, {"gpu", "v100"}}));
  EXPECT_EQ(spec["containers"].size(), 2u);
  EXPECT_EQ(spec["containers"][0]["resources"]["requests"]["cpu"], "4");
}

// Pods are read by many, so they have the digests of the tokens only.
TEST_F(PodTemplatesTest, CoordinatorsKnowTheDigestsOfTokensThatReadTheirMetrics) {
  EXPECT_EQ(Env(Pods()["coordinator"], "MEDLEY_METRICS_TOKEN_SHA256"), "");
  settings_.metrics_token_digests = std::string(64, 'a');
  EXPECT_EQ(Env(Pods()["coordinator"], "MEDLEY_METRICS_TOKEN_SHA256"), std::string(64, 'a'));
}

}  // namespace
}  // namespace medley::ops
