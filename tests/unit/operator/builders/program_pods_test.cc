// The pods of a job with spec.program: in an image of the user, which has nothing of Medley, the agent comes from an
// init container.
#include <gmock/gmock.h>

#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::Contains;

class ProgramPodsTest : public testing::Test {
 protected:
  ProgramPodsTest() {
    job_ = SampleJobJson();
    Json& spec = job_["spec"];
    for (const char* field : {"model", "data", "template"}) spec.erase(field);
    spec["program"] = {{"image", "registry.example/team/llm:3"},
                       {"command", {"python3", "train.py"}},
                       {"samplesPerStep", 8},
                       {"steps", 100},
                       {"progress", {{"log", R"(step (?P<step>\d+))"}}}};
  }
  // By role: coordinator, trainer, profiler.
  std::map<std::string, Json> Pods() {
    std::map<std::string, Json> pods;
    for (const kube::Object& pod : EachKindOfPod(ReadJob(job_), SamplePool(), settings_)) {
      if (pod.label(kRoleLabel) != "server") pods[pod.label(kRoleLabel)] = pod.At("/spec");
    }
    return pods;
  }

  Json job_;
  WorkerSettings settings_{.image = "medley-worker:1", .image_pull_policy = "IfNotPresent"};
};

TEST_F(ProgramPodsTest, AnImageOfTheUserGetsTheAgentFromMedleys) {
  for (const auto& [role, pod] : Pods()) {
    SCOPED_TRACE(role);
    const Json& worker = pod["containers"][0];
    if (role == "coordinator") {
      EXPECT_EQ(worker["image"], "medley-worker:1");
      EXPECT_FALSE(pod.contains("initContainers"));
      continue;
    }
    EXPECT_EQ(worker["image"], "registry.example/team/llm:3");
    EXPECT_EQ(worker["command"], Json::array({"/run/medley/agent/medley-agent"}));
    EXPECT_EQ(worker["args"], Json::array({"--role=" + role}));
    EXPECT_THAT(
        worker["volumeMounts"],
        Contains(Json::object({{"name", "medley-agent"}, {"mountPath", "/run/medley/agent"}, {"readOnly", true}})));
    EXPECT_THAT(pod["volumes"], Contains(Json::object({{"name", "medley-agent"}, {"emptyDir", Json::object()}})));
    ASSERT_EQ(pod["initContainers"].size(), 1u);
    const Json& copier = pod["initContainers"][0];
    EXPECT_EQ(copier["image"], "medley-worker:1");
    EXPECT_EQ(copier["imagePullPolicy"], "IfNotPresent");
    EXPECT_EQ(copier["command"], Json::array({"/usr/local/bin/medley-agent"}));
    EXPECT_EQ(copier["args"], Json::array({"--install=/run/medley/agent/medley-agent"}));
    EXPECT_EQ(copier["volumeMounts"],
              Json::array({Json::object({{"name", "medley-agent"}, {"mountPath", "/run/medley/agent"}})}))
        << "nothing of the job";
    EXPECT_FALSE(copier.contains("env"));
    EXPECT_EQ(copier["securityContext"]["allowPrivilegeEscalation"], false);
    EXPECT_EQ(copier["resources"]["limits"], Json::object({{"cpu", "4"}})) << "of the unit, without its GPU";
    EXPECT_EQ(copier["resources"]["requests"], Json::object({{"cpu", "4"}}));
  }
}

// The job may have 1 to `most` units of a pool of 8.
TEST_F(ProgramPodsTest, AProfilerKnowsWhichSizesAPlanMayHave) {
  const auto sizes = [this](const kube::Json& scaling, int least, int most, bool gpu) -> std::string {
    job_["spec"]["program"]["scaling"] = scaling;
    job_["spec"]["elasticity"]["minUnits"] = least;
    job_["spec"]["elasticity"]["maxUnits"] = most;
    ResourcePool pool = SamplePool();
    pool.limit = 8;
    pool.cls = gpu ? model::ResourceClass::kGpu : model::ResourceClass::kCpu;
    const kube::Object pod = ProfilerPod(ReadJob(job_), pool, settings_);
    for (const Json& entry : pod.At("/spec/containers/0/env")) {
      if (entry["name"] == "MEDLEY_PROFILE_SIZES") return entry["value"];
    }
    return "";
  };
  EXPECT_EQ(sizes({{"units", {1, 2, 4, 8}}}, 1, 8, false), "2,4");
  EXPECT_EQ(sizes({{"units", {1, 2, 4, 8}}}, 1, 2, false), "2");
  EXPECT_EQ(sizes({{"units", {1, 8}}}, 1, 64, false), "8") << "the pool has 8";
  EXPECT_EQ(sizes({{"units", {1, 16}}}, 1, 64, false), "");
  EXPECT_EQ(sizes(Json::object(), 1, 64, false), "2,4");
  EXPECT_EQ(sizes(Json::object(), 6, 64, false), "6");
  EXPECT_EQ(sizes(Json::object(), 1, 1, false), "");
  EXPECT_EQ(sizes({{"units", {1, 2}}, {"measure", false}}, 1, 2, false), "");
  EXPECT_EQ(sizes({{"units", {1, 2}}}, 1, 2, true), "") << "processes of several units cannot share a GPU";
}

TEST_F(ProgramPodsTest, ATemplateMayChooseTheImageButNotWhatItStarts) {
  job_["spec"]["program"].erase("image");
  for (const auto& [role, pod] : Pods()) EXPECT_FALSE(pod.contains("initContainers")) << role << ": it has the agent";
  job_["spec"]["template"]["spec"] = {
      {"initContainers", {{{"name", "medley-agent"}, {"image", "other"}}, {{"name", "warm"}, {"image", "cache"}}}},
      {"containers", {{{"image", "own"}, {"command", {"sh"}}}}}};
  const Json pod = Pods().at("trainer");
  EXPECT_EQ(pod["containers"][0]["image"], "own");
  EXPECT_EQ(pod["containers"][0]["command"], Json::array({"/run/medley/agent/medley-agent"}));
  ASSERT_EQ(pod["initContainers"].size(), 2u);
  EXPECT_EQ(pod["initContainers"][0]["image"], "medley-worker:1");
  EXPECT_EQ(pod["initContainers"][1]["image"], "cache");
}

TEST_F(ProgramPodsTest, AnotherReleaseOfTheAgentReplacesThePods) {
  const auto digest = [this](Role role) {
    const ResourcePool pool = SamplePool();
    return TemplateDigest(ReadJob(job_), role, &pool, settings_);
  };
  const std::string before = digest(Role::kTrainer);
  settings_.image = "medley-worker:2";
  EXPECT_NE(digest(Role::kTrainer), before);
}

}  // namespace
}  // namespace medley::ops
