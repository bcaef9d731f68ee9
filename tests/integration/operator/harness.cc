#include "tests/integration/operator/harness.h"

#include <cstdlib>
#include <iostream>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "kube/errors.h"
#include "medley/profile/v1/profile.pb.h"
#include "operator/api/resources.h"
#include "operator/lifecycle/actions.h"

namespace medley::ops {
namespace {

using kube::Json;

void WaitABit(base::nanoseconds time) {
  base::Mutex mutex;
  base::CondVar never;
  base::MutexLock lock(mutex);
  never.WaitFor(mutex, {}, time, [] { return false; });
}

std::string ProfileLine(const std::string& pool) {
  model::Profile profile;
  profile.id = "p";
  profile.profile_batch_size = 512;
  profile.samples_per_epoch = 1000000;
  for (const char* name : {"emb", "fc", "loss"}) {
    model::Layer layer;
    layer.name = name;
    layer.kind = "OTHER";
    model::LayerProfile numbers;
    numbers.resource_type = pool;
    numbers.compute_seconds = 0.01;
    numbers.compute_parallel = 1;
    layer.profiles.push_back(numbers);
    profile.model.layers.push_back(layer);
  }
  profile::v1::Profile proto;
  model::ToProto(profile, proto);
  return "noise\nMEDLEY-PROFILE " + model::ToJson(proto) + "\n";
}

// A real API server asks a kubelet for logs; here the harness is the kubelet.
class ClientWithLogs final : public kube::Client {
 public:
  ClientWithLogs(std::unique_ptr<kube::Client> client, localcluster::LogReader& logs)
      : owned_(std::move(client)), client_(*owned_), logs_(logs) {}

  absl::StatusOr<std::string> GetRaw(std::string_view path) override {
    const size_t pods = path.find("/pods/");
    const size_t log = path.find("/log", pods == std::string_view::npos ? 0 : pods);
    if (pods == std::string_view::npos || log == std::string_view::npos) return client_.GetRaw(path);
    // It has no log, but says whether we may read one.
    if (const auto asked = client_.GetRaw(path); absl::IsPermissionDenied(asked.status())) return asked.status();
    const std::string name(path.substr(pods + 6, log - pods - 6));
    std::string text;
    MEDLEY_RETURN_IF_ERROR(logs_.ReadLog({"", name}, {}, {}, [&](std::string_view piece) {
      text += piece;
      return true;
    }));
    return text;
  }
  absl::Status StreamRaw(std::string_view path, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override {
    return client_.StreamRaw(path, std::move(stop), on_bytes);
  }
  absl::StatusOr<kube::Object> Get(const kube::Resource& resource, const kube::Key& key) override {
    return client_.Get(resource, key);
  }
  absl::StatusOr<kube::ObjectList> List(const kube::Resource& resource, const kube::ListOptions& options) override {
    return client_.List(resource, options);
  }
  absl::StatusOr<kube::Object> Create(const kube::Resource& resource, const kube::Object& object) override {
    return client_.Create(resource, object);
  }
  absl::StatusOr<kube::Object> Update(const kube::Resource& resource, const kube::Object& object,
                                      std::string_view subresource) override {
    return client_.Update(resource, object, subresource);
  }
  absl::StatusOr<kube::Object> Patch(const kube::Resource& resource, const kube::Key& key, kube::PatchType type,
                                     const Json& patch, const kube::PatchOptions& options,
                                     std::string_view subresource) override {
    return client_.Patch(resource, key, type, patch, options, subresource);
  }
  absl::Status Delete(const kube::Resource& resource, const kube::Key& key,
                      const kube::DeleteOptions& options) override {
    return client_.Delete(resource, key, options);
  }
  absl::Status Watch(const kube::Resource& resource, const kube::WatchOptions& options, std::stop_token stop,
                     const std::function<bool(kube::WatchEvent)>& on_event) override {
    return client_.Watch(resource, options, std::move(stop), on_event);
  }

 private:
  const std::unique_ptr<kube::Client> owned_;
  kube::Client& client_;
  localcluster::LogReader& logs_;
};

std::unique_ptr<kube::HttpClient> NewClient(const kube::TestServer& server, base::Clock& clock) {
  return std::make_unique<kube::HttpClient>(server.config(), clock, 1);
}

// The operator's own account, where MEDLEY_TEST_OPERATOR_KUBECONFIG names one (tests/integration/chart): with no more
// rights than the chart gives.
std::unique_ptr<kube::HttpClient> NewOperatorsClient(const kube::TestServer& server, base::Clock& clock) {
  const auto path = kube::ProcessEnvironment()("MEDLEY_TEST_OPERATOR_KUBECONFIG");
  if (!path) return NewClient(server, clock);
  auto config = kube::LoadKubeconfig(*path);
  MEDLEY_CHECK(config.ok(), base::ToString(config.status()));
  return std::make_unique<kube::HttpClient>(*std::move(config), clock, 1);
}

}  // namespace

OperatorHarness::OperatorHarness()
    : server_(GetParam(), clock_), ns_(server_.ns()), client_(NewClient(server_, clock_)) {}
OperatorHarness::~OperatorHarness() = default;

void OperatorHarness::InstallCrds() {
  const std::string crds = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/deploy/crds/";
  for (const char* file : {"resourcepools.yaml", "trainingjobs.yaml"})
    server_.InstallCrd(base::ReadFile(crds + file).value());
}

void OperatorHarness::SetUp() {
  InstallCrds();
  if (server_.real()) {
    operators_ = std::make_unique<ClientWithLogs>(NewOperatorsClient(server_, clock_), *this);
  } else {
    server_.embedded()->SetLogReader(this);
    operators_ = NewClient(server_, clock_);
  }
  AddNode("n1", {{"cpu", "64"}, {"example.com/gpu", "4"}, {"pods", "200"}});
  Apply(ResourcePools(), Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "cpu"}, "spec": {"class": "CPU", "limit": 16, "unit": {"resources": {"cpu": "1"}},
    "price": {"usdPerUnitHour": "0.04"}}})"));
  Apply(ResourcePools(), Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "gpu"}, "spec": {"class": "GPU", "limit": 2, "unit": {"resources": {"example.com/gpu": "1"}},
    "price": {"offering": {"provider": "aws", "region": "r", "instanceType": "p3", "capacityType": "spot"}}}})"));
}

void OperatorHarness::TearDown() {
  if (HasFailure()) PrintEvents();
  StopOperator();
  if (server_.real()) {
    CleanUp();
  } else {
    server_.embedded()->SetLogReader(nullptr);
  }
  client_->Shutdown();
}

// What a real server would keep for the next test.
void OperatorHarness::CleanUp() {
  const auto jobs = client_->List(TrainingJobs(), {.ns = ns_});
  ASSERT_THAT(jobs, base::IsOk());
  for (const kube::Object& job : jobs->items) {
    const Json released = {{"metadata", {{"finalizers", nullptr}}}};
    for (const absl::Status& status :
         {client_->Delete(TrainingJobs(), job.key()),
          client_->Patch(TrainingJobs(), job.key(), kube::PatchType::kMerge, released).status()}) {
      EXPECT_TRUE(status.ok() || kube::IsNotFound(status)) << base::ToString(status);
    }
  }
  const auto pools = client_->List(ResourcePools(), {});
  ASSERT_THAT(pools, base::IsOk());
  for (const kube::Object& pool : pools->items) EXPECT_THAT(client_->Delete(ResourcePools(), pool.key()), base::IsOk());
  // Pods that are left would take room on the nodes of the next test, which have the same names.
  const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
  ASSERT_THAT(pods, base::IsOk());
  for (const kube::Object& pod : pods->items) {
    const absl::Status deleted = client_->Delete(kube::resources::Pods(), pod.key(), {.grace_period_seconds = 0});
    EXPECT_TRUE(deleted.ok() || kube::IsNotFound(deleted)) << base::ToString(deleted);
  }
  for (const std::string& node : nodes_) {
    const absl::Status gone = client_->Delete(kube::resources::Nodes(), {"", node});
    EXPECT_TRUE(gone.ok() || kube::IsNotFound(gone)) << base::ToString(gone);
  }
}

absl::Status OperatorHarness::ReadLog(const kube::Key& pod, const localcluster::LogOptions&, std::stop_token,
                                      const std::function<bool(std::string_view)>& sink) {
  const size_t at = pod.name.find("-profile-");
  if (at == std::string::npos) {
    sink("line one\nsegmentation fault\n");
  } else {
    sink(profiler_log_.empty() ? ProfileLine(pod.name.substr(at + 9)) : profiler_log_);
  }
  return absl::OkStatus();
}

OperatorOptions OperatorHarness::Options() {
  OperatorOptions options;
  options.scheduler_address = scheduler_.address();
  options.job.worker.listen_port = coordinator_.port();
  options.job.worker.tls = false;  // one fake coordinator serves all jobs
  options.job.status_interval = base::milliseconds(200);
  options.max_profilers = max_profilers_;
  options.recommend = recommend_;
  options.job.recheck = recheck_;
  options.job.settled_recheck = recheck_;
  options.job.progress_interval = base::nanoseconds(0);
  options.job.scheduler_retry = base::milliseconds(300);
  options.job.default_warm_up_seconds = 1;
  options.job.capacity_debounce = capacity_debounce_;
  options.job.capacity_interval = base::milliseconds(300);
  options.job.over_window = over_window_;
  options.job.notice_patience = kNoticePatience;
  return options;
}

void OperatorHarness::StartOperator() {
  app_ = std::make_unique<OperatorApp>(Options(), *operators_, clock_);
  ASSERT_THAT(app_->Start({}), base::IsOk());
}

void OperatorHarness::StopOperator() {
  if (app_ != nullptr) app_->Stop();
  app_.reset();
}

Json OperatorHarness::JobJson(const std::string& name) {
  Json job = Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {},
    "spec": {"model": {"name": "ctrdnn"}, "training": {"epochs": 1},
             "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                      "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]}},
             "elasticity": {"replan": {"cooldown": "60s"}}}})");
  job["metadata"]["namespace"] = ns_;
  job["metadata"]["name"] = name;
  // A real scheduler would place pods first.
  if (place_) job["spec"]["runPolicy"]["schedulingPolicy"]["schedulerName"] = "this-test";
  return job;
}

void OperatorHarness::Apply(const kube::Resource& resource, const Json& object) {
  const auto made = client_->Create(resource, kube::Object(object));
  ASSERT_THAT(made, base::IsOk());
}

void OperatorHarness::PatchSpec(const std::string& name, const Json& spec) {
  ASSERT_THAT(client_->Patch(TrainingJobs(), {ns_, name}, kube::PatchType::kMerge, {{"spec", spec}}), base::IsOk());
}

void OperatorHarness::SetPod(const std::string& name, const Json& status) {
  const auto done =
      client_->Patch(kube::resources::Pods(), {ns_, name}, kube::PatchType::kMerge, {{"status", status}}, {}, "status");
  if (kube::IsNotFound(done.status())) return;
  ASSERT_THAT(done, base::IsOk());
}

void OperatorHarness::AddNode(const std::string& name, const Json& allocatable) {
  nodes_.push_back(name);
  Apply(kube::resources::Nodes(), {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}});
  PatchNodeStatus(name, {{"allocatable", allocatable}});
  SetNodeReady(name, true);
  // A real server taints a new node; its controller would remove the taint some time later.
  PatchNode(name, {{"spec", {{"taints", nullptr}}}});
}

void OperatorHarness::SetNodeReady(const std::string& name, bool ready) {
  PatchNodeStatus(name, {{"conditions", Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})}});
}

void OperatorHarness::PatchNodeStatus(const std::string& name, const Json& status) {
  ASSERT_THAT(
      client_->Patch(kube::resources::Nodes(), {"", name}, kube::PatchType::kMerge, {{"status", status}}, {}, "status"),
      base::IsOk());
}

void OperatorHarness::PatchNode(const std::string& name, const Json& patch) {
  ASSERT_THAT(client_->Patch(kube::resources::Nodes(), {"", name}, kube::PatchType::kMerge, patch), base::IsOk());
}

void OperatorHarness::Taint(const std::string& node, const std::string& key) {
  const Json taint = {{"key", key}, {"effect", "NoSchedule"}};
  PatchNode(node, {{"spec", {{"taints", Json::array({taint})}}}});
}

void OperatorHarness::Bind(const kube::Object& pod, const std::string& node) {
  const kube::Resource binding{"", "v1", "pods/" + pod.key().name + "/binding", "Binding", true};
  kube::Object object(binding, pod.key());
  object.mutable_json()["target"] = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}};
  const auto bound = client_->Create(binding, object);
  EXPECT_TRUE(bound.ok() || kube::IsConflict(bound.status()) || kube::IsNotFound(bound.status()))
      << base::ToString(bound.status());
}

void OperatorHarness::Pump() {
  if (!kubelet_on_) return;
  const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
  ASSERT_THAT(pods, base::IsOk());
  for (const kube::Object& pod : pods->items) {
    if (dead_nodes_.contains(pod.String("/spec/nodeName"))) continue;
    if (pod.deleting()) {  // its containers have ended
      const absl::Status gone =
          client_->Delete(kube::resources::Pods(), pod.key(), {.uid = pod.uid(), .grace_period_seconds = 0});
      EXPECT_TRUE(gone.ok() || kube::IsNotFound(gone) || kube::IsConflict(gone)) << base::ToString(gone);
      continue;
    }
    if (pod.label(kRoleLabel) == "trainer" && pools_without_nodes_.contains(pod.label(kPoolLabel))) {
      const Json waits = {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
      if (pod.At("/status/conditions").empty()) SetPod(pod.key().name, {{"conditions", Json::array({waits})}});
      continue;
    }
    if (place_ && pod.String("/spec/nodeName").empty()) {
      if (const std::string node = place_(pod); !node.empty()) Bind(pod, node);
    }
    const std::string phase = pod.String("/status/phase");
    if (phase == "Running" && pod.label(kRoleLabel) == "coordinator" && coordinator_.ends()) {
      SetPod(pod.key().name, {{"phase", "Succeeded"}});
      continue;
    }
    if (phase == "Running" || phase == "Succeeded" || phase == "Failed") continue;
    if (pod.label(kRoleLabel) == "profiler") {
      const auto special = profiler_exits_.find(pod.label(kPoolLabel));
      const int code = special == profiler_exits_.end() ? profiler_exit_.load() : special->second;
      SetPod(pod.key().name,
             {{"phase", code == 0 ? "Succeeded" : "Failed"},
              {"containerStatuses", Json::array({{{"name", "worker"},
                                                  {"image", "i"},
                                                  {"imageID", ""},
                                                  {"ready", false},
                                                  {"restartCount", 0},
                                                  {"state", {{"terminated", {{"exitCode", code}}}}}}})}});
    } else {
      SetPod(pod.key().name, {{"phase", "Running"}, {"podIP", "127.0.0.1"}});
    }
  }
}

bool OperatorHarness::Eventually(const std::function<bool()>& holds, const std::string& what) {
  const base::SystemClock real;
  const base::SteadyTime deadline = real.Steady() + base::Patience(base::seconds(100));
  while (real.Steady() < deadline) {
    Pump();
    if (holds()) return true;
    WaitABit(base::milliseconds(10));
  }
  ADD_FAILURE() << "waited in vain for: " << what << "\n" << Status().ToJson().dump(2);
  return false;
}

void OperatorHarness::Settle() {
  for (int i = 0; i < 20; ++i) {
    Pump();
    WaitABit(base::milliseconds(10));
  }
}

bool OperatorHarness::WaitForCondition(const std::string& type, const std::string& status, const std::string& reason) {
  return Eventually(
      [&] {
        const JobStatus now = Status();
        const Condition* found = now.conditions.Find(type);
        return found != nullptr && ToString(found->status) == status && (reason.empty() || found->reason == reason);
      },
      type + "=" + status + " " + reason);
}

void OperatorHarness::RunJob() {
  Apply(TrainingJobs(), JobJson());
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  ASSERT_TRUE(WaitForCondition("PodsReady", "True"));
}

JobStatus OperatorHarness::Status(const std::string& name) {
  const auto job = client_->Get(TrainingJobs(), {ns_, name});
  return job.ok() ? JobStatus::FromJson(job->At("/status")) : JobStatus();
}

kube::Object OperatorHarness::Get(const kube::Resource& resource, const kube::Key& key) {
  const auto object = client_->Get(resource, key);
  EXPECT_THAT(object, base::IsOk());
  return object.ok() ? *object : kube::Object();
}

std::string OperatorHarness::SecretOf(const std::string& job) {
  const auto secrets = client_->List(kube::resources::Secrets(), {.ns = ns_});
  if (!secrets.ok()) return "";
  for (const kube::Object& secret : secrets->items) {
    if (secret.key().name.starts_with(job + "-token-")) return secret.key().name;
  }
  return "";
}

bool OperatorHarness::Exists(const kube::Resource& resource, const kube::Key& key) {
  return client_->Get(resource, key).ok();
}

std::set<std::string> OperatorHarness::PodNames() {
  std::set<std::string> names;
  const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
  EXPECT_THAT(pods, base::IsOk());
  if (pods.ok()) {
    for (const kube::Object& pod : pods->items) names.insert(pod.key().name);
  }
  return names;
}

bool OperatorHarness::HasEvent(const std::string& reason, const std::string& part) {
  const auto events = client_->List(kube::resources::Events(), {.ns = ns_});
  if (!events.ok()) return false;
  for (const kube::Object& event : events->items) {
    if (event.String("/reason") == reason && event.String("/message").find(part) != std::string::npos) return true;
  }
  return false;
}

void OperatorHarness::PrintEvents() {
  const auto events = client_->List(kube::resources::Events(), {.ns = ns_});
  if (!events.ok()) return;
  for (const kube::Object& event : events->items) {
    std::cout << event.String("/involvedObject/name") << ' ' << event.String("/reason") << ": "
              << event.String("/message") << '\n';
  }
}

}  // namespace medley::ops
