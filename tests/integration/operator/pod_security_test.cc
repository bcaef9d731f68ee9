// A namespace that enforces the Pod Security Standard `restricted` takes each kind of pod that the
// operator makes, and a real API server's own admission decides what restricted is.
#include <absl/strings/match.h>
#include <gmock/gmock.h>

#include <iostream>

#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/builders/pod_group.h"
#include "operator/builders/pods.h"
#include "tests/integration/kube/test_server.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

class PodSecurityTest : public testing::TestWithParam<kube::ServerKind> {
 protected:
  PodSecurityTest() : server_(GetParam(), clock_), client_(server_.client()) {
    Json job = SampleJobJson();
    job["metadata"]["namespace"] = server_.ns();
    job["spec"]["runPolicy"].erase("schedulingPolicy");  // no such PriorityClass here
    job_ = job;
    if (!server_.real()) {
      std::cerr << "[   NOTE   ] the embedded API server admits every pod: set "
                   "MEDLEY_TEST_KUBECONFIG (./dev cluster test) for Pod Security\n";
    }
  }
  // Returns when the server enforces it: its admission reads a namespace's labels from a cache that follows the store.
  void Enforce() {
    const Json labels = {{"metadata",
                          {{"labels",
                            {{"pod-security.kubernetes.io/enforce", "restricted"},
                             {"pod-security.kubernetes.io/enforce-version", "latest"}}}}}};
    ASSERT_THAT(client_.Patch(kube::resources::Namespaces(), {"", server_.ns()}, kube::PatchType::kMerge, labels),
                base::IsOk());
    if (!server_.real()) return;
    const kube::Object forbidden(Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "forbidden", "namespace": ")" +
                                             server_.ns() + R"("},
        "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]}})"));
    ASSERT_TRUE(server_.Eventually([&] {
      return absl::StrContains(Admit(forbidden).message(), "violates PodSecurity");
    })) << "the server does not enforce restricted in "
        << server_.ns();
  }
  // As a dry run does, but with the object stored and taken back.
  absl::Status Admit(const kube::Object& pod) {
    const auto made = client_.Create(kube::resources::Pods(), pod);
    if (!made.ok()) return made.status();
    const absl::Status gone = client_.Delete(kube::resources::Pods(), pod.key(), {.grace_period_seconds = 0});
    return kube::IsNotFound(gone) ? absl::OkStatus() : gone;
  }

  base::SystemClock clock_;
  kube::TestServer server_;
  kube::HttpClient& client_;
  Json job_;
  const WorkerSettings settings_{.image = "registry/medley-worker:1",
                                 .metrics_port = 9090,
                                 .image_pull_policy = "IfNotPresent",
                                 .image_pull_secrets = {"site"}};
};
INSTANTIATE_TEST_SUITE_P(On, PodSecurityTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(PodSecurityTest, RestrictedTakesEachKindOfPod) {
  Enforce();
  for (const kube::Object& pod : EachKindOfPod(ReadJob(job_), SamplePool(), settings_))
    EXPECT_THAT(Admit(pod), base::IsOk()) << pod.key().name;
  // With sidecars of a template that say nothing of security.
  job_["spec"]["template"]["spec"] = Json::parse(R"({"initContainers": [{"name": "fetch", "image": "i"}],
                      "containers": [{"name": "sidecar", "image": "s"}]})");
  for (const kube::Object& pod : EachKindOfPod(ReadJob(job_), SamplePool(), settings_))
    EXPECT_THAT(Admit(pod), base::IsOk()) << pod.key().name;
}

TEST_P(PodSecurityTest, RestrictedRefusesWhatATemplateLoosens) {
  Enforce();
  job_["spec"]["template"]["spec"] =
      Json::parse(R"({"containers": [{"securityContext": {"allowPrivilegeEscalation": true}}]})");
  for (const kube::Object& pod : EachKindOfPod(ReadJob(job_), SamplePool(), settings_)) {
    const absl::Status refused = Admit(pod);
    EXPECT_EQ(refused.ok(), !server_.real()) << base::ToString(refused);
    if (!server_.real()) continue;
    EXPECT_THAT(base::ToString(refused), testing::HasSubstr("allowPrivilegeEscalation"));
  }
}

// Schemas and validation of the server for everything else that builders make.
TEST_P(PodSecurityTest, TheOtherObjectsAreTaken) {
  const TrainingJob job = ReadJob(job_);
  const std::pair<kube::Resource, kube::Object> objects[] = {
      {kube::resources::Services(), CoordinatorService(job, settings_)},
      {kube::resources::ConfigMaps(), SpecConfigMap(job)},
      {kube::resources::Secrets(), TokenSecret(job, {"t", "", ""}, "adult-token")},
      {kube::resources::NetworkPolicies(), JobNetworkPolicy(job, settings_)},
      {kube::resources::PodDisruptionBudgets(), DisruptionBudget(job, 4)},
      {kube::resources::ConfigMaps(), ProfileConfigMap(server_.ns(), "00ff", "v100-spot", "{}")},
  };
  for (const auto& [resource, object] : objects)
    EXPECT_THAT(client_.Create(resource, object), base::IsOk()) << object.kind();
}

}  // namespace
}  // namespace medley::ops
