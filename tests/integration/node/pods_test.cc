// A process node against an API: pods from creation to deletion, with real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "kube/json_access.h"
#include "localcluster/apiserver/api_server.h"
#include "localcluster/node/emulation.h"
#include "localcluster/node/proc_stat.h"
#include "localcluster/node/process_node.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr base::seconds kPatience{60};

class PodsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = base::MakeTempDir("pods_test");
    ASSERT_THAT(folder, IsOk());
    folder_ = *folder;
    ASSERT_THAT(api_.Start(), IsOk());
    ClientConfig config;
    config.server = api_.url();
    config.token = api_.token();
    client_ = std::make_unique<HttpClient>(std::move(config), clock_, 1);
    StartNode();
  }
  void TearDown() override {
    if (node_ != nullptr) node_->Stop();
    api_.SetLogReader(nullptr);
    node_.reset();
    client_.reset();
    api_.Stop();
    base::RemoveTempDir(folder_);
  }

  void StartNode() {
    localcluster::ProcessNodeOptions options;
    options.root = folder_ / "node";
    options.nodes = {{"small", {{"pool", "small"}}, {{"cpu", "2"}, {"memory", "4Gi"}}},
                     {"big", {{"pool", "big"}}, {{"cpu", "8"}, {"example.com/unit", "1"}}}};
    options.images = {{"sh", "/bin/sh"}, {"text", folder_ / "text"}};
    options.restart_backoff = base::milliseconds(100);
    options.restart_backoff_max = base::milliseconds(400);
    options.stop_grace = base::milliseconds(300);
    node_ = std::make_unique<localcluster::ProcessNode>(*client_, clock_, options);
    ASSERT_THAT(node_->Start(), IsOk());
    api_.SetLogReader(node_.get());
  }

  Client& client() { return *client_; }
  // A pod that runs `script` in /bin/sh; `more` is merged over its spec.
  Object MakePod(const std::string& name, const std::string& script, const char* more = "{}",
                 const char* container = "{}") {
    Json json = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", name}, {"namespace", "default"}, {"labels", {{"app", "x"}}}}},
                 {"spec", {{"restartPolicy", "Never"}, {"terminationGracePeriodSeconds", 30}}}};
    Json main = {{"name", "main"}, {"image", "sh:1"}, {"command", {"/bin/sh", "-c", script}}};
    MergePatch(main, Json::parse(container));
    json["spec"]["containers"] = Json::array({main});
    MergePatch(json["spec"], Json::parse(more));
    return Object(json);
  }
  void Create(const Object& pod) {
    const auto created = client().Create(resources::Pods(), pod);
    ASSERT_THAT(created, IsOk());
  }
  Object Pod(const std::string& name) {
    auto pod = client().Get(resources::Pods(), {"default", name});
    return pod.ok() ? *pod : Object();
  }
  bool Eventually(const std::function<bool()>& holds) {
    const base::SteadyTime deadline = clock_.Steady() + kPatience;
    while (!holds()) {
      if (clock_.Steady() > deadline) return false;
      clock_.SleepFor(base::milliseconds(10), {});
    }
    return true;
  }
  // Waits until the pod has the phase, and returns it.
  Object AwaitPhase(const std::string& name, const std::string& phase) {
    EXPECT_TRUE(Eventually([&] { return Pod(name).String("/status/phase") == phase; }))
        << name << " should be " << phase << ": " << Pod(name).At("/status").dump(1);
    return Pod(name);
  }
  bool AwaitDeleted(const std::string& name) {
    return Eventually([&] { return IsNotFound(client().Get(resources::Pods(), {"default", name}).status()); });
  }
  std::string Log(const std::string& name, localcluster::LogOptions options = {}) {
    std::string text;
    const absl::Status read = node_->ReadLog({"default", name}, options, {}, [&](std::string_view bytes) {
      text += bytes;
      return true;
    });
    return read.ok() ? text : "error: " + base::Message(read);
  }
  // At() of it returns null for an absent field.
  static Object ContainerOf(const Object& pod) { return Object(pod.At("/status/containerStatuses/0")); }
  static std::string Condition(const Object& pod, const std::string& type, const std::string& field = "status") {
    for (const Json& condition : GetArray(pod.At("/status"), "conditions")) {
      if (GetString(condition, "type") == type) return GetString(condition, field);
    }
    return "";
  }
  static bool Lives(pid_t pid) {
    const auto stat = localcluster::ReadProcStat(pid);
    return stat && stat->state != 'Z';
  }
  pid_t AwaitPid(const std::string& name) {  // the first line of the pod's log
    EXPECT_TRUE(Eventually([&] { return Log(name).find('\n') != std::string::npos && Log(name)[0] != 'e'; }));
    return std::stoi(Log(name));
  }

  base::SystemClock clock_;
  fs::path folder_;
  localcluster::ApiServer api_{clock_, {}};
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<localcluster::ProcessNode> node_;
};

TEST_F(PodsTest, NodesAreRegistered) {
  const auto node = client().Get(resources::Nodes(), {"", "big"});
  ASSERT_THAT(node, IsOk());
  EXPECT_EQ(node->label("pool"), "big");
  EXPECT_EQ(Condition(*node, "Ready"), "True");
  EXPECT_EQ(node->At("/status/allocatable").at("example.com/unit"), "1");
  node_->Stop();
  EXPECT_EQ(Condition(*client().Get(resources::Nodes(), {"", "big"}), "Ready"), "False");
}

TEST_F(PodsTest, SucceedsAndReportsAsAKubelet) {
  Create(MakePod("good", "echo hello; exit 0", R"({"nodeSelector": {"pool": "big"}})"));
  const Object pod = AwaitPhase("good", "Succeeded");
  EXPECT_EQ(pod.String("/spec/nodeName"), "big");
  EXPECT_EQ(ContainerOf(pod).At("/state/terminated/exitCode"), 0);
  EXPECT_EQ(ContainerOf(pod).At("/state/terminated/reason"), "Completed");
  EXPECT_EQ(Condition(pod, "PodScheduled"), "True");
  EXPECT_EQ(Condition(pod, "Ready"), "False");
  EXPECT_EQ(Condition(pod, "Ready", "reason"), "PodCompleted");
  EXPECT_EQ(pod.String("/status/podIP").substr(0, 4), "127.");
  EXPECT_EQ(Log("good"), "hello\n");
}

TEST_F(PodsTest, FailsWithExitCodeOrSignal) {
  Create(MakePod("code", "exit 42"));
  Create(MakePod("signal", "kill -SEGV $$$$"));
  const Object code = AwaitPhase("code", "Failed");
  EXPECT_EQ(ContainerOf(code).At("/state/terminated/exitCode"), 42);
  EXPECT_EQ(ContainerOf(code).At("/state/terminated/reason"), "Error");
  const Object by_signal = AwaitPhase("signal", "Failed");
  EXPECT_EQ(ContainerOf(by_signal).At("/state/terminated/signal"), SIGSEGV);
  EXPECT_EQ(ContainerOf(by_signal).At("/state/terminated/exitCode"), 128 + SIGSEGV);
}

TEST_F(PodsTest, EnvironmentAndVolumes) {
  Object config(resources::ConfigMaps(), {"default", "cm"});
  config.mutable_json()["data"] = {{"key", "from-config"}, {"file", "see /data/x"}};
  ASSERT_THAT(client().Create(resources::ConfigMaps(), config), IsOk());
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "x", "host-file"), IsOk());
  Object pod = MakePod("env", "echo $NAME $IP $KEY; cat /cfg/file; echo; cat /data/x; echo; echo $MEDLEY_MOUNT_DATA",
                       "{}", R"({"env": [
      {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
      {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
      {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "key"}}}],
    "volumeMounts": [{"name": "cfg", "mountPath": "/cfg"}, {"name": "data", "mountPath": "/data"}]})");
  pod.mutable_json()["spec"]["volumes"] = {{{"name", "cfg"}, {"configMap", {{"name", "cm"}}}},
                                           {{"name", "data"}, {"hostPath", {{"path", folder_.string()}}}}};
  Create(pod);
  const Object done = AwaitPhase("env", "Succeeded");
  EXPECT_EQ(Log("env"), "env " + done.String("/status/podIP") + " from-config\nsee " + folder_.string() +
                            "/x\nhost-file\n" + folder_.string() + "\n");
}

// Issue 13: what `kubectl logs` and other pods read must not be another file of the user.
TEST_F(PodsTest, LinksInThePlaceOfALogOrAVolumeAreNotFollowed) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "secret", "2026-11-21T07:15:00.000000000Z the user's\n"), IsOk());
  Create(MakePod("log", "cd logs/main && rm 0.log && ln -s " + (folder_ / "secret").string() + " 0.log"));
  AwaitPhase("log", "Succeeded");
  EXPECT_THAT(Log("log"), testing::AllOf(HasSubstr("symbolic link"), testing::Not(HasSubstr("the user's"))));

  fs::create_directories(folder_ / "user");
  const char* const claim = R"({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]})";
  Create(MakePod("plants", "rmdir $MEDLEY_MOUNT_V && ln -s " + (folder_ / "user").string() + " $MEDLEY_MOUNT_V", claim,
                 R"({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})"));
  AwaitPhase("plants", "Succeeded");
  Create(MakePod("mounts", "echo evil > /v/file", claim, R"({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})"));
  EXPECT_TRUE(Eventually([&] {
    return ContainerOf(Pod("mounts")).String("/state/waiting/message").find("symbolic link") != std::string::npos;
  })) << Pod("mounts").At("/status").dump(1);
  EXPECT_TRUE(fs::is_empty(folder_ / "user"));
}

TEST_F(PodsTest, WaitsForAConfigMapThenStarts) {
  Create(MakePod("waits", "exit 0", "{}",
                 R"({"env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}]})"));
  ASSERT_TRUE(Eventually(
      [&] { return ContainerOf(Pod("waits")).String("/state/waiting/reason") == "CreateContainerConfigError"; }));
  EXPECT_THAT(ContainerOf(Pod("waits")).String("/state/waiting/message"), HasSubstr("'late'"));
  Object config(resources::ConfigMaps(), {"default", "late"});
  config.mutable_json()["data"] = {{"k", "v"}};
  ASSERT_THAT(client().Create(resources::ConfigMaps(), config), IsOk());
  AwaitPhase("waits", "Succeeded");
}

TEST_F(PodsTest, UnknownImageAndUnexecutableProgramSayWhy) {
  Create(MakePod("image", "", "{}", R"({"image": "other:1"})"));
  ASSERT_TRUE(Eventually([&] { return !ContainerOf(Pod("image")).At("/state").is_null(); }));
  EXPECT_EQ(ContainerOf(Pod("image")).At("/state/waiting/reason"), "ErrImagePull");
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "text", "no program"), IsOk());
  Create(MakePod("noexec", "", "{}", R"({"image": "text", "command": null})"));
  const Object pod = AwaitPhase("noexec", "Failed");
  EXPECT_EQ(ContainerOf(pod).At("/state/terminated/reason"), "ContainerCannotRun");
}

TEST_F(PodsTest, AnUnschedulablePodSaysWhyAndIsPlacedWhenThereIsRoom) {
  const char* unit = R"({"resources": {"limits": {"example.com/unit": "1"}}})";
  Create(MakePod("first", "sleep 1000", "{}", unit));
  AwaitPhase("first", "Running");
  Create(MakePod("second", "exit 0", "{}", unit));
  ASSERT_TRUE(Eventually([&] { return Condition(Pod("second"), "PodScheduled") == "False"; }));
  EXPECT_EQ(Condition(Pod("second"), "PodScheduled", "reason"), "Unschedulable");
  EXPECT_THAT(Condition(Pod("second"), "PodScheduled", "message"), HasSubstr("2 Insufficient example.com/unit"));
  DeleteOptions now;
  now.grace_period_seconds = 1;
  ASSERT_THAT(client().Delete(resources::Pods(), {"default", "first"}, now), IsOk());
  AwaitPhase("second", "Succeeded");
}

TEST_F(PodsTest, RestartsWithBackoff) {
  Create(MakePod("crash", "echo try; exit 3", R"({"restartPolicy": "OnFailure"})"));
  ASSERT_TRUE(Eventually([&] { return GetInt(ContainerOf(Pod("crash")).json(), "restartCount", 0) >= 3; }));
  bool backed_off = false;
  EXPECT_TRUE(Eventually([&] {
    const Object pod = Pod("crash");
    backed_off = ContainerOf(pod).String("/state/waiting/reason") == "CrashLoopBackOff";
    if (backed_off) {
      EXPECT_EQ(ContainerOf(pod).At("/lastState/terminated/exitCode"), 3);
    }
    return backed_off;
  }));
  EXPECT_EQ(Pod("crash").String("/status/phase"), "Running");
  localcluster::LogOptions previous;
  previous.previous = true;
  EXPECT_EQ(Log("crash", previous), "try\n");
}

TEST_F(PodsTest, TerminationMessageIsInTheStatus) {
  Create(MakePod("default", "echo done > /dev/termination-log"));
  Create(MakePod("path", "printf '%s' \"$FILE\" > $FILE; exit 1", "{}",
                 R"({"terminationMessagePath": "/run/end", "env": [{"name": "FILE", "value": "/run/end"}]})"));
  Create(MakePod("long", "printf 'no%05000d' 7 > /dev/termination-log"));
  Create(MakePod("bytes", "printf 'a\\377b' > /dev/termination-log"));
  Create(MakePod("none", "exit 3"));
  const auto message = [&](const char* pod, const char* phase) {
    return ContainerOf(AwaitPhase(pod, phase)).String("/state/terminated/message");
  };
  EXPECT_EQ(message("default", "Succeeded"), "done\n");
  EXPECT_THAT(message("path", "Failed"), testing::StartsWith(folder_.string()));  // a file of this container's own
  const std::string last = message("long", "Succeeded");
  EXPECT_EQ(last.size(), 4096u);
  EXPECT_TRUE(last.ends_with("007")) << last;
  EXPECT_EQ(message("bytes", "Succeeded"), "a\\xffb");
  EXPECT_EQ(message("none", "Failed"), "");
}

// The second start ends when the test says so, and the third does not.
TEST_F(PodsTest, EachStartOfAContainerHasItsOwnTerminationMessage) {
  const std::string script =
      "if [ -e second ]; then while :; do sleep 0.05; done; fi; "
      "if [ -e first ]; then touch second; while [ ! -e go ]; do sleep 0.05; done; exit 4; fi; "
      "touch first; echo first > /dev/termination-log; exit 3";
  Create(MakePod("again", "cd " + folder_.string() + "; " + script, R"({"restartPolicy": "OnFailure"})"));
  const auto await_end = [&](int code) {
    EXPECT_TRUE(Eventually([&] { return ContainerOf(Pod("again")).At("/lastState/terminated/exitCode") == code; }));
    return ContainerOf(Pod("again")).String("/lastState/terminated/message");
  };
  EXPECT_EQ(await_end(3), "first\n");
  std::ofstream(folder_ / "go").close();
  EXPECT_EQ(await_end(4), "");
}

TEST_F(PodsTest, EndOfTheLogIsTheMessageOfAFailedContainer) {
  const char* const falls_back = R"({"terminationMessagePolicy": "FallbackToLogsOnError"})";
  Create(MakePod("fails", "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; exit 1", "{}", falls_back));
  Create(MakePod("says", "echo line; echo why > /dev/termination-log; exit 1", "{}", falls_back));
  Create(MakePod("works", "echo line", "{}", falls_back));
  const auto message = [&](const char* pod, const char* phase) {
    return ContainerOf(AwaitPhase(pod, phase)).String("/state/terminated/message");
  };
  const std::string log = message("fails", "Failed");
  EXPECT_TRUE(log.starts_with("line 120\n") && log.ends_with("line 199\n")) << log;
  EXPECT_EQ(message("says", "Failed"), "why\n");
  EXPECT_EQ(message("works", "Succeeded"), "");
}

// What a status shows must not be another file of the user, nor block the node.
TEST_F(PodsTest, OnlyAFileIsATerminationMessage) {
  ASSERT_THAT(base::WriteFileAtomic(folder_ / "secret", "the user's"), IsOk());
  const auto put = [&](const std::string& what) { return "f=$PWD/termination/main; rm $f; " + what; };
  Create(MakePod("link", put("ln -s " + (folder_ / "secret").string() + " $f")));
  Create(MakePod("pipe", put("mkfifo $f")));
  Create(MakePod("folder", put("mkdir $f")));
  Create(MakePod("removed", put("true")));
  for (const char* pod : {"link", "pipe", "folder", "removed"}) {
    EXPECT_EQ(ContainerOf(AwaitPhase(pod, "Succeeded")).String("/state/terminated/message"), "") << pod;
  }
}

TEST_F(PodsTest, OnFailureEndsWithTheFirstSuccess) {
  const std::string mark = (folder_ / "mark").string();
  Create(MakePod("retry", "if [ -e " + mark + " ]; then exit 0; fi; touch " + mark + "; exit 1",
                 R"({"restartPolicy": "OnFailure"})"));
  const Object pod = AwaitPhase("retry", "Succeeded");
  EXPECT_EQ(ContainerOf(pod).At("/restartCount"), 1);
  EXPECT_EQ(ContainerOf(pod).At("/lastState/terminated/exitCode"), 1);
}

TEST_F(PodsTest, DeletionLetsTheProcessFinish) {
  Create(MakePod("polite", "trap 'echo bye > " + (folder_ / "bye").string() +
                               "; exit 0' TERM; echo $$$$; "
                               "while :; do sleep 0.05; done"));
  AwaitPid("polite");
  ASSERT_THAT(client().Delete(resources::Pods(), {"default", "polite"}), IsOk());
  ASSERT_TRUE(AwaitDeleted("polite"));
  EXPECT_TRUE(fs::exists(folder_ / "bye"));
}

TEST_F(PodsTest, AProcessThatIgnoresSigtermIsKilledAfterItsGracePeriod) {
  Create(MakePod("stubborn", "trap '' TERM; echo $$$$; while :; do sleep 0.05; done"));
  const pid_t pid = AwaitPid("stubborn");
  DeleteOptions options;
  options.grace_period_seconds = 1;
  const base::SteadyTime start = clock_.Steady();
  ASSERT_THAT(client().Delete(resources::Pods(), {"default", "stubborn"}, options), IsOk());
  ASSERT_TRUE(AwaitDeleted("stubborn"));
  EXPECT_GE(clock_.Steady() - start, base::milliseconds(950));
  EXPECT_FALSE(Lives(pid));
  ASSERT_TRUE(Eventually([&] { return fs::is_empty(folder_ / "node" / "pods"); }));
}

TEST_F(PodsTest, ForcedDeletionKillsAtOnce) {
  Create(MakePod("forced", "trap '' TERM; echo $$$$; while :; do sleep 0.05; done"));
  const pid_t pid = AwaitPid("forced");
  DeleteOptions options;
  options.grace_period_seconds = 0;
  ASSERT_THAT(client().Delete(resources::Pods(), {"default", "forced"}, options), IsOk());
  EXPECT_TRUE(Eventually([&] { return !Lives(pid); }));
}

TEST_F(PodsTest, PodsThatNeverStartedAreDeletedToo) {
  Create(MakePod("never", "", "{}", R"({"image": "other"})"));
  ASSERT_TRUE(Eventually([&] { return !ContainerOf(Pod("never")).At("/state").is_null(); }));
  ASSERT_THAT(client().Delete(resources::Pods(), {"default", "never"}), IsOk());
  EXPECT_TRUE(AwaitDeleted("never"));
}

TEST_F(PodsTest, DeadlineEndsThePod) {
  Create(MakePod("late", "sleep 1000", R"({"activeDeadlineSeconds": 1})"));
  const Object pod = AwaitPhase("late", "Failed");
  EXPECT_EQ(pod.String("/status/reason"), "DeadlineExceeded");
}

TEST_F(PodsTest, ReadinessFollowsTheProbe) {
  const std::string mark = (folder_ / "ready").string();
  const std::string container = R"({"readinessProbe": {"periodSeconds": 1, "failureThreshold": 1,
      "exec": {"command": ["sh", "-c", "test -e )" +
                                mark + R"("]}}})";
  Create(MakePod("probe", "sleep 1000", "{}", container.c_str()));
  const Object pod = AwaitPhase("probe", "Running");
  EXPECT_EQ(Condition(pod, "Ready"), "False");
  ASSERT_THAT(base::WriteFileAtomic(mark, ""), IsOk());
  EXPECT_TRUE(Eventually([&] { return Condition(Pod("probe"), "Ready") == "True"; }));
  fs::remove(mark);
  EXPECT_TRUE(Eventually([&] { return Condition(Pod("probe"), "Ready") == "False"; }));
}

TEST_F(PodsTest, MemoryLimitKillsWithItsReason) {
  Create(MakePod("hungry", "x=$(head -c 1000000 /dev/zero | tr '\\0' a); while :; do x=$x$x; sleep 0.1; done", "{}",
                 R"({"resources": {"limits": {"memory": "32Mi"}}})"));
  const Object pod = AwaitPhase("hungry", "Failed");
  EXPECT_EQ(ContainerOf(pod).At("/state/terminated/reason"), "OOMKilled");
  EXPECT_EQ(ContainerOf(pod).At("/state/terminated/exitCode"), 137);
}

TEST_F(PodsTest, InitContainersRunFirst) {
  Object pod = MakePod("init", "cat $HOME/made");
  pod.mutable_json()["spec"]["initContainers"] = {
      {{"name", "first"}, {"image", "sh"}, {"command", {"sh", "-c", "echo one > $HOME/made"}}}};
  Create(pod);
  const Object done = AwaitPhase("init", "Succeeded");
  localcluster::LogOptions options;
  options.container = "main";
  EXPECT_EQ(Log("init", options), "one\n");
  EXPECT_EQ(done.At("/status/initContainerStatuses/0/state/terminated/exitCode"), 0);
}

TEST_F(PodsTest, LogIsFollowedToTheEnd) {
  const std::string go = (folder_ / "go").string();
  Create(MakePod("talks", "echo one; while [ ! -e " + go + " ]; do sleep 0.02; done; echo two"));
  ASSERT_TRUE(Eventually([&] { return Log("talks") == "one\n"; }));
  std::string text;
  std::jthread reader([&] {
    localcluster::LogOptions options;
    options.follow = true;
    text = Log("talks", options);
  });
  ASSERT_THAT(base::WriteFileAtomic(go, ""), IsOk());
  reader.join();
  EXPECT_EQ(text, "one\ntwo\n");
  EXPECT_THAT(client().GetRaw("/api/v1/namespaces/default/pods/talks/log?tailLines=1"), base::IsOkAndHolds("two\n"));
  EXPECT_THAT(Log("absent"), HasSubstr("not started"));
}

TEST_F(PodsTest, AnAnnotationLimitsTheCoresOfARunningPod) {
  // A line for about a millisecond of CPU time. The limit is far below what a busy machine leaves for the pod.
  Create(MakePod("busy", "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo; done", "{}",
                 R"({"resources": {"limits": {"cpu": "10m"}}})"));
  const auto lines = [&] { return std::ranges::count(Log("busy"), '\n'); };
  // Lines of a quarter of a second that begins now.
  const auto rate = [&] {
    const auto before = lines();
    const base::SteadyTime end = clock_.Steady() + base::milliseconds(250);
    Eventually([&] { return clock_.Steady() > end; });
    return static_cast<double>(lines() - before);
  };
  ASSERT_TRUE(Eventually([&] { return lines() > 4; }));
  const double limited = std::max({rate(), rate(), rate()});
  const Json more = {{"metadata", {{"annotations", {{localcluster::kCpuAnnotation, "1"}}}}}};
  ASSERT_THAT(client().Patch(resources::Pods(), {"default", "busy"}, PatchType::kMerge, more, {}, ""), IsOk());
  EXPECT_TRUE(Eventually([&] { return rate() > 2 * limited; })) << "not faster than " << limited;
  const Json none = {{"metadata", {{"annotations", {{localcluster::kCpuAnnotation, nullptr}}}}}};
  ASSERT_THAT(client().Patch(resources::Pods(), {"default", "busy"}, PatchType::kMerge, none, {}, ""), IsOk());
  EXPECT_TRUE(Eventually([&] { return rate() <= limited; })) << "the limit of the container holds again";
}

TEST_F(PodsTest, ADelayNeedsAnEmulatedNetwork) {
  Object pod = MakePod("slow", "exit 0");
  pod.SetAnnotation(localcluster::kLinkDelayAnnotation, "20ms");
  Create(pod);
  EXPECT_TRUE(Eventually([&] {
    return ContainerOf(Pod("slow")).String("/state/waiting/message").find("needs an emulated network") !=
           std::string::npos;
  }));
}

TEST_F(PodsTest, AnUnchangedPodCausesNoWrites) {
  Create(MakePod("calm", "sleep 1000"));
  AwaitPhase("calm", "Running");
  ASSERT_TRUE(Eventually([&] { return Condition(Pod("calm"), "Ready") == "True"; }));
  const std::string version = Pod("calm").resource_version();
  const base::SteadyTime start = clock_.Steady();
  Eventually([&] { return clock_.Steady() - start > base::milliseconds(500); });
  EXPECT_EQ(Pod("calm").resource_version(), version);
}

TEST_F(PodsTest, StopEndsProcessesAndTheNextNodeRestartsThem) {
  Create(MakePod("always", "echo $$$$; sleep 1000", R"({"restartPolicy": "Always"})"));
  const pid_t pid = AwaitPid("always");
  Create(MakePod("once", "echo $$$$; sleep 1000"));
  AwaitPid("once");
  node_->Stop();
  EXPECT_FALSE(Lives(pid));
  api_.SetLogReader(nullptr);
  node_.reset();
  StartNode();
  ASSERT_TRUE(Eventually([&] { return GetInt(ContainerOf(Pod("always")).json(), "restartCount", 0) == 1; }));
  AwaitPhase("always", "Running");
  AwaitPhase("once", "Failed");
}

TEST_F(PodsTest, TwoNodesCannotShareOneFolder) {
  localcluster::ProcessNodeOptions options;
  options.root = folder_ / "node";
  options.nodes = {{"other", {}, {}}};
  localcluster::ProcessNode second(*client_, clock_, options);
  EXPECT_THAT(second.Start(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another process node")));
}

}  // namespace
}  // namespace medley::kube
