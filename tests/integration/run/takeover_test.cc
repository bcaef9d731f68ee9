// All of Medley on three machines of which the coordinator's is lost: its node is drained, or dies and leaves its Node
// and Pod objects behind. Each machine is a process node of its own; operator, scheduler and workers are the programs.
#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>

#include "cli/run/child_process.h"
#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "kube/leader/fenced_client.h"
#include "localcluster/apiserver/api_server.h"
#include "localcluster/node/process_node.h"
#include "operator/api/job_status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

using base::IsOk;
using kube::Json;

// With units of a tenth of a core half a minute, more than a hand-over needs on a machine with other work.
constexpr int kEpochs = 50;
constexpr int kBatch = 512;

std::filesystem::path Variable(const char* name) { return std::getenv(name); }

// What steps.jsonl says.
struct Steps {
  int64_t rows = 0;  // of the first data epoch
  int64_t last = 0;  // each step up to it is trained once, after the rollbacks
  int rollbacks = 0;
  int64_t undone = 0;  // steps that were rolled back
};

class TakeoverTest : public testing::Test, public localcluster::LogReader {
 public:
  // As the API server asks the kubelet of the pod's node.
  absl::Status ReadLog(const kube::Key& pod, const localcluster::LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override {
    absl::Status status = base::NotFound("no machine runs {}", pod.name);
    for (auto& [name, machine] : machines_) {
      if (absl::IsNotFound(status)) status = machine.node->ReadLog(pod, options, stop, sink);
    }
    return status;
  }

 protected:
  struct Machine {
    std::unique_ptr<kube::HttpClient> client;
    std::atomic<bool> dead = false;  // it cannot write to the API server any more
    std::unique_ptr<kube::FencedClient> writes;
    std::unique_ptr<localcluster::ProcessNode> node;
  };

  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-takeover");
    server_ = std::make_unique<localcluster::ApiServer>(
        clock_, localcluster::ApiServerOptions{.crd_paths = {Variable("MEDLEY_SOURCE_DIR") / "deploy/crds"}});
    ASSERT_THAT(server_->Start(), IsOk());
    ASSERT_THAT(server_->WriteKubeconfig(folder_ / "kubeconfig"), IsOk());
    client_ = Connect();
    StartMachine("members", "127.64.0.0/12", "members");
    StartMachine("control-a", "127.80.0.0/12", "control");
    StartMachine("control-b", "127.96.0.0/12", "control");
    ASSERT_FALSE(HasFatalFailure());
    server_->SetLogReader(this);
    StartScheduler();
    operator_ =
        *ChildProcess::Start({.program = Variable("MEDLEY_BIN_DIR") / "medley-operator",
                              .arguments = {"--kubeconfig", (folder_ / "kubeconfig").string(), "--scheduler",
                                            scheduler_address_, "--worker-image", "medley-worker", "--status-interval",
                                            "0.2", "--warm-up-seconds", "2", "--schedule-window", "2"},
                              .log = folder_ / "operator.log"});
    Create(ops::ResourcePools(), "members", "", {{"spec", Pool()}});
    Create(ops::TrainingJobs(), "job", "default", {{"spec", Job()}});
  }
  void TearDown() override {
    if (HasFailure()) {
      std::printf("%s\n", base::ReadFile(folder_ / "operator.log").value_or("").c_str());
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
        if (entry.path().extension() == ".log" && entry.path().string().find("coordinator") != std::string::npos) {
          std::printf("==== %s\n%s\n", entry.path().c_str(), base::ReadFile(entry.path()).value_or("").c_str());
        }
      }
    }
    if (operator_) operator_->Stop(base::seconds(3));
    server_->SetLogReader(nullptr);
    for (auto& [name, machine] : machines_) machine.node->Stop();
    if (scheduler_) scheduler_->Stop(base::seconds(3));
    for (auto& [name, machine] : machines_) machine.client->Shutdown();
    if (client_) client_->Shutdown();
    server_->Stop();
    base::RemoveTempDir(folder_);
  }

  std::unique_ptr<kube::HttpClient> Connect() {
    return std::make_unique<kube::HttpClient>(*kube::LoadKubeconfig(folder_ / "kubeconfig"), clock_, 1);
  }
  void StartMachine(const std::string& name, const std::string& addresses, const std::string& role) {
    Machine& machine = machines_[name];
    machine.client = Connect();
    machine.writes = std::make_unique<kube::FencedClient>(*machine.client, [&machine] {
      return machine.dead ? base::Unavailable("the machine is dead") : absl::OkStatus();
    });
    localcluster::ProcessNodeOptions options;
    options.root = folder_ / name;
    options.nodes = {{.name = name, .labels = {{"role", role}}, .allocatable = {{"cpu", "16"}, {"memory", "32Gi"}}}};
    options.images = {{"medley-worker", Variable("MEDLEY_BIN_DIR") / "medley-worker"}};
    options.inherit_env.insert(options.inherit_env.end(), {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"});
    options.pod_cidr = addresses;
    options.keep_pod_folders = true;
    machine.node = std::make_unique<localcluster::ProcessNode>(*machine.writes, clock_, std::move(options));
    ASSERT_THAT(machine.node->Start(), IsOk());
  }
  void StartScheduler() {
    const auto ports = folder_ / "ports";
    scheduler_ = *ChildProcess::Start(
        {.program = Variable("MEDLEY_BIN_DIR") / "medley-scheduler",
         .arguments = {"--grpc-listen", "127.0.0.1:0", "--rest-listen", "127.0.0.1:0", "--port-file", ports.string()},
         .log = folder_ / "scheduler.log"});
    Json port;
    ASSERT_TRUE(Eventually([&] {
      port = Json::parse(base::ReadFile(ports).value_or(""), nullptr, false);
      return port.is_object();
    })) << "the scheduler has not started";
    scheduler_address_ = "127.0.0.1:" + port["grpc"].dump();
  }
  static Json Pool() {
    return {{"class", "CPU"},
            {"nodeSelector", {{"role", "members"}}},
            {"unit",
             {{"resources", {{"cpu", "100m"}, {"memory", "2Gi"}}},
              {"env", Json::array({{{"name", "MEDLEY_PROFILE_TIME"}, {"value", "1s"}}})}}},
            {"limit", 3},
            {"price", {{"usdPerUnitHour", "0.10"}}}};
  }
  Json Job() {
    const Json schema = {{"label", {{"column", 14}, {"positive", ">50K"}}},
                         {"categorical", {1, 3, 5, 6, 7, 8, 9, 13}},
                         {"numeric", {0, 2, 4, 10, 11, 12}}};
    const std::string data = (Variable("MEDLEY_SOURCE_DIR") / "examples/data").string();
    std::filesystem::create_directories(folder_ / "volume");
    return {{"model",
             {{"name", "ctrdnn"}, {"parameters", {{"embeddingDim", 4}, {"embeddingRows", 4096}, {"hidden", {16}}}}}},
            {"data",
             {{"train", {{"uri", "file:///data/adult.train.csv"}, {"format", "csv"}}},
              {"schema", schema},
              {"volume", {{"hostPath", {{"path", data}}}, {"mountPath", "/data"}}}}},
            {"training", {{"epochs", kEpochs}, {"batchSize", kBatch}, {"microBatches", 1}}},
            {"objective", {{"maxUsdPerHour", "2"}}},
            {"elasticity", {{"enabled", false}}},
            {"checkpoint",
             {{"interval", "2s"},
              {"volume", {{"hostPath", {{"path", (folder_ / "volume").string()}}}, {"mountPath", "/checkpoints"}}}}},
            {"template", {{"coordinator", {{"spec", {{"nodeSelector", {{"role", "control"}}}}}}}}},
            {"runPolicy", {{"cleanPodPolicy", "None"}}}};
  }
  void Create(const kube::Resource& resource, const std::string& name, const std::string& ns, const Json& fields) {
    kube::Object object(resource, {ns, name});
    object.mutable_json().update(fields);
    ASSERT_THAT(client_->Create(resource, object), IsOk());
  }
  bool Eventually(const std::function<bool()>& holds, base::seconds limit = base::seconds(120)) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(limit);
    while (clock_.Steady() < deadline) {
      if (holds()) return true;
      clock_.SleepFor(base::milliseconds(50), {});
    }
    return false;
  }
  ops::JobStatus Status() {
    const auto job = client_->Get(ops::TrainingJobs(), {"default", "job"});
    return job.ok() ? ops::JobStatus::FromJson(job->At("/status")) : ops::JobStatus();
  }
  absl::StatusOr<kube::Object> Pod(const std::string& name) {
    return client_->Get(kube::resources::Pods(), {"default", name});
  }
  bool Runs(const std::string& name) {
    const auto pod = Pod(name);
    return pod.ok() && pod->String("/status/phase") == "Running";
  }
  std::map<std::string, std::string> MemberUids() {
    std::map<std::string, std::string> uids;
    const auto pods = client_->List(kube::resources::Pods(), {.ns = "default"});
    if (!pods.ok()) return uids;
    for (const kube::Object& pod : pods->items) {
      const std::string role = pod.label(ops::kRoleLabel);
      if (role == "trainer" || role == "server") uids[pod.key().name] = pod.uid();
    }
    return uids;
  }
  void PatchNode(const std::string& name, const Json& patch, const std::string& subresource = "") {
    ASSERT_THAT(client_->Patch(kube::resources::Nodes(), {"", name}, kube::PatchType::kMerge, patch, {}, subresource),
                IsOk());
  }
  // Returns the name of the coordinator's node; "": the job does not train.
  std::string WaitUntilTrained(int64_t steps) {
    EXPECT_TRUE(Eventually([&] { return ReadSteps().last >= steps; }, base::seconds(180)));
    const auto pod = Pod("job-coordinator");
    return pod.ok() && !HasFailure() ? pod->String("/spec/nodeName") : "";
  }
  void ExpectComplete() {
    ASSERT_TRUE(Eventually([&] { return Status().finished(); }, base::seconds(400))) << "it does not end";
    EXPECT_TRUE(Status().conditions.IsTrue("Complete"));
    const Steps steps = ReadSteps();
    EXPECT_EQ(steps.last, kEpochs * ((kRows + kBatch - 1) / kBatch));
    EXPECT_EQ(Status().observed->samples, kRows * kEpochs);
  }
  Steps ReadSteps() {
    Steps steps;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "volume")) {
      if (entry.path().filename() == "steps.jsonl") ReadSteps(entry.path(), steps);
    }
    return steps;
  }
  static void ReadSteps(const std::filesystem::path& path, Steps& steps) {
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
      const Json line = Json::parse(text, nullptr, false);
      if (line.is_discarded()) return;  // it is being written
      if (line.contains("rollback_to")) {
        ++steps.rollbacks;
        steps.undone += steps.last - line["rollback_to"].get<int64_t>();
        steps.last = line["rollback_to"].get<int64_t>();
        continue;
      }
      EXPECT_EQ(line["step"].get<int64_t>(), steps.last + 1) << text;
      steps.last = line["step"].get<int64_t>();
    }
  }

  static constexpr int64_t kRows = 32561;  // of adult.train.csv
  base::SystemClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<localcluster::ApiServer> server_;
  std::unique_ptr<kube::HttpClient> client_;
  std::map<std::string, Machine> machines_;
  std::unique_ptr<ChildProcess> scheduler_;
  std::unique_ptr<ChildProcess> operator_;
  std::string scheduler_address_;
};

TEST_F(TakeoverTest, TheCoordinatorLeavesADrainedNodeWhileTheMembersTrainOn) {
  const std::string node = WaitUntilTrained(100);
  ASSERT_NE(node, "") << "it does not train";
  const std::map<std::string, std::string> members = MemberUids();
  ASSERT_FALSE(members.empty());
  const int64_t generation = Status().plan->generation;
  // As kubectl drain does. The first one leads on for 25 s at most, so the second one is started before, however slow
  // this machine is.
  PatchNode(node, {{"spec", {{"unschedulable", true}}}});
  ASSERT_TRUE(Eventually([&] { return Runs("job-coordinator-2"); })) << "no second one";
  ASSERT_THAT(client_->Delete(kube::resources::Pods(), {"default", "job-coordinator"}, {.grace_period_seconds = 30}),
              IsOk());
  ASSERT_TRUE(Eventually([&] { return kube::IsNotFound(Pod("job-coordinator").status()); })) << "it has not left";
  ASSERT_TRUE(Eventually([&] { return Status().coordinator_term == 2; }));
  const auto second = Pod("job-coordinator-2");
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(second->String("/spec/nodeName"), node);
  EXPECT_FALSE(Status().finished()) << "the job is too short for this test";
  ExpectComplete();
  EXPECT_EQ(MemberUids(), members) << "no member was replaced";
  EXPECT_EQ(Status().restarts, 0);
  EXPECT_EQ(Status().plan->generation, generation);
  EXPECT_EQ(ReadSteps().rollbacks, 0) << "no step is trained twice";
}

TEST_F(TakeoverTest, ADeadNodeThatLeavesItsObjectsBehindDoesNotHoldTheJob) {
  const std::string node = WaitUntilTrained(100);
  ASSERT_NE(node, "") << "it does not train";
  const std::map<std::string, std::string> members = MemberUids();
  // The machine hangs: the coordinator does nothing more, and the API server hears nothing of its kubelet.
  Machine& machine = machines_.at(node);
  ASSERT_THAT(machine.node->Signal({"default", "job-coordinator"}, SIGSTOP), IsOk());
  machine.dead = true;
  // As the node's controller does when the kubelet is silent.
  const std::string now = base::FormatTime(base::SystemClock().Now());
  PatchNode(
      node,
      {{"spec", {{"taints", Json::array({{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}}})}}}});
  PatchNode(node,
            {{"status",
              {{"conditions", Json::array({{{"type", "Ready"},
                                            {"status", "Unknown"},
                                            {"reason", "NodeStatusUnknown"},
                                            {"lastTransitionTime", now}}})}}}},
            "status");
  ASSERT_TRUE(Eventually([&] { return Status().coordinator_term >= 2; })) << "nobody took over";
  ExpectComplete();
  EXPECT_EQ(MemberUids(), members) << "no member was replaced";
  EXPECT_LE(ReadSteps().undone, 1) << "what the members have applied counts";
  const auto dead = Pod("job-coordinator");
  ASSERT_THAT(dead, IsOk()) << "no kubelet confirms its deletion";
  EXPECT_TRUE(dead->deleting());
}

}  // namespace
}  // namespace medley::cli
