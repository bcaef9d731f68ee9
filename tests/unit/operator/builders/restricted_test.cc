// Checks every requirement of the Pod Security Standards, level restricted (v1.34), for every kind of pod.
#include "operator/builders/restricted.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::Contains;
using testing::IsEmpty;

Json At(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) ? json.at(at) : Json();
}

// The requirements for one container. A setting of the pod applies when the container does not have it.
void CheckContainer(const Json& pod, const Json& container, std::vector<std::string>& broken) {
  const auto require = [&](bool holds, const char* what) {
    if (!holds) broken.emplace_back(what);
  };
  const auto own_or_pods = [&](const char* field) {
    const Json own = At(container, (std::string("/securityContext") + field).c_str());
    return own.is_null() ? At(pod, (std::string("/securityContext") + field).c_str()) : own;
  };
  // baseline
  require(At(container, "/securityContext/privileged") != true, "privileged containers");
  require(At(container, "/securityContext/procMount").is_null(), "/proc mount type");
  for (const Json& port : container.value("ports", Json::array()))
    require(port.value("hostPort", 0) == 0, "host ports");
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    for (const char* how : {"httpGet", "tcpSocket"}) {
      require(container.value(probe, Json::object()).value(how, Json::object()).value("host", "").empty(),
              "host probes");
    }
  }
  const std::set<std::string> apparmor = {"RuntimeDefault", "Localhost"};
  const Json profile = own_or_pods("/appArmorProfile/type");
  require(profile.is_null() || apparmor.contains(profile), "AppArmor");
  require(own_or_pods("/seLinuxOptions").is_null(), "SELinux");
  require(own_or_pods("/windowsOptions/hostProcess") != true, "HostProcess");
  // restricted
  require(At(container, "/securityContext/allowPrivilegeEscalation") == false, "allowPrivilegeEscalation");
  require(own_or_pods("/runAsNonRoot") == true, "runAsNonRoot");
  require(own_or_pods("/runAsUser") != 0, "runAsUser");
  const Json seccomp = own_or_pods("/seccompProfile/type");
  require(seccomp == "RuntimeDefault" || seccomp == "Localhost", "seccomp");
  const Json drop = At(container, "/securityContext/capabilities/drop");
  require(drop.is_array() && std::find(drop.begin(), drop.end(), "ALL") != drop.end(), "capabilities.drop");
  for (const Json& added : At(container, "/securityContext/capabilities/add"))
    require(added == "NET_BIND_SERVICE", "capabilities.add");
}

std::vector<std::string> Violations(const Json& pod) {
  std::vector<std::string> broken;
  for (const char* host : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod.value(host, false)) broken.emplace_back("host namespaces");
  }
  static const std::set<std::string> kVolumes = {"configMap", "csi",       "downwardAPI",
                                                 "emptyDir",  "ephemeral", "persistentVolumeClaim",
                                                 "projected", "secret",    "image"};
  for (const Json& volume : pod.value("volumes", Json::array())) {
    for (const auto& [source, value] : volume.items()) {
      if (source != "name" && !kVolumes.contains(source)) broken.push_back("volume type " + source);
    }
  }
  static const std::set<std::string> kSysctls = {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
                                                 "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
                                                 "net.ipv4.ip_unprivileged_port_start"};
  for (const Json& sysctl : At(pod, "/securityContext/sysctls")) {
    if (!kSysctls.contains(sysctl.value("name", ""))) broken.emplace_back("sysctls");
  }
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : pod.value(list, Json::array())) CheckContainer(pod, container, broken);
  }
  return broken;
}

// What Medley's own container has in addition to `restricted`.
void ExpectHardened(const kube::Object& pod) {
  EXPECT_EQ(pod.At("/spec/automountServiceAccountToken"), false);
  EXPECT_EQ(pod.At("/spec/enableServiceLinks"), false);
  EXPECT_EQ(pod.At("/spec/containers/0/securityContext/readOnlyRootFilesystem"), true);
  EXPECT_GT(pod.At("/spec/securityContext/runAsUser").get<int>(), 1000);
}

class RestrictedTest : public testing::Test {
 protected:
  std::vector<kube::Object> Pods(const Json& template_spec = Json::object()) {
    Json json = SampleJobJson();
    if (!template_spec.empty()) json["spec"]["template"]["spec"] = template_spec;
    return EachKindOfPod(ReadJob(json), SamplePool(), {"registry/medley-worker:1", 7070, 9090});
  }
};

TEST_F(RestrictedTest, EveryPodPassesEveryRequirement) {
  for (const kube::Object& pod : Pods()) {
    EXPECT_THAT(Violations(pod.At("/spec")), IsEmpty()) << pod.key().name;
    ExpectHardened(pod);
  }
}

TEST_F(RestrictedTest, SidecarsOfATemplateGetTheMissingSettings) {
  const auto pods = Pods(Json::parse(R"({
    "initContainers": [{"name": "fetch", "image": "i", "securityContext": {"runAsUser": 7}}],
    "containers": [{"name": "sidecar", "image": "s"},
                   {"name": "web", "image": "w", "securityContext":
                     {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}]})"));
  for (const kube::Object& pod : pods) {
    EXPECT_THAT(Violations(pod.At("/spec")), IsEmpty()) << pod.json().dump(2);
    EXPECT_EQ(pod.At("/spec/initContainers/0/securityContext/runAsUser"), 7);
    EXPECT_EQ(pod.At("/spec/containers/2/securityContext/capabilities/add/0"), "NET_BIND_SERVICE");
  }
}

TEST_F(RestrictedTest, SettingsOfATemplateAreKeptAndDetected) {
  const std::pair<const char*, const char*> breaks[] = {
      {R"({"hostNetwork": true})", "host namespaces"},
      {R"({"containers": [{"securityContext": {"privileged": true}}]})", "privileged containers"},
      {R"({"containers": [{"securityContext": {"procMount": "Unmasked"}}]})", "/proc mount type"},
      {R"({"containers": [{"securityContext": {"allowPrivilegeEscalation": true}}]})", "allowPrivilegeEscalation"},
      {R"({"containers": [{"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]})", "capabilities.add"},
      {R"({"containers": [{"securityContext": {"capabilities": {"drop": ["CHOWN"]}}}]})", "capabilities.drop"},
      {R"({"containers": [{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}]})", "seccomp"},
      {R"({"securityContext": {"runAsNonRoot": false}})", "runAsNonRoot"},
      {R"({"securityContext": {"runAsUser": 0}})", "runAsUser"},
      {R"({"securityContext": {"seLinuxOptions": {"level": "s0"}}})", "SELinux"},
      {R"({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}})", "AppArmor"},
      {R"({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}})", "sysctls"},
      {R"({"containers": [{"ports": [{"containerPort": 1, "hostPort": 1}]}]})", "host ports"},
      {R"({"containers": [{"livenessProbe": {"tcpSocket": {"host": "h", "port": 1}}}]})", "host probes"},
      {R"({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]})", "volume type hostPath"},
  };
  for (const auto& [spec, requirement] : breaks) {
    for (const kube::Object& pod : Pods(Json::parse(spec)))
      EXPECT_THAT(Violations(pod.At("/spec")), Contains(requirement)) << spec;
  }
}

}  // namespace
}  // namespace medley::ops
