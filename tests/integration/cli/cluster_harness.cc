#include "tests/integration/cli/cluster_harness.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/fingerprint.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/api/training_job.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using kube::Json;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "." : value;
}

localcluster::ApiServerOptions Options(bool installed) {
  localcluster::ApiServerOptions options;
  options.self_signed = true;  // for kubectl
  options.random = [rng = base::Rng(1)]() mutable { return rng.Next(); };
  if (installed) options.crd_paths = {Variable("MEDLEY_SOURCE_DIR") + "/deploy/crds"};
  return options;
}

// A profile of the job of objects.h, measured on one pool.
kube::Object ProfileMap(const std::string& hash, const std::string& pool, double seconds, bool servers) {
  Json layers = Json::array();
  for (const char* name : {"emb", "fc1", "loss"}) {
    Json numbers = {{"resourceType", pool},      {"computeSeconds", seconds}, {"computeParallel", 0.95},
                    {"transferSeconds", 0.0001}, {"commParallel", 0.9},       {"origin", "measured"}};
    if (servers && std::string(name) == "emb") numbers["serverSeconds"] = 0.0005;
    layers.push_back({{"name", name},
                      {"kind", "FULLY_CONNECTED"},
                      {"outputBytes", 64},
                      {"weightBytes", 100000},
                      {"profiles", {numbers}}});
  }
  const Json profile = {{"id", "profile-" + pool},
                        {"profileBatchSize", 512},
                        {"samplesPerEpoch", 976800},
                        {"stateFactor", 3},
                        {"model", {{"name", "ctrdnn"}, {"layers", layers}}}};
  kube::Object map(kube::resources::ConfigMaps(), {"", ops::ProfileConfigMapName(hash, pool)});
  map.SetLabel(ops::kProfileLabel, hash);
  map.SetLabel(ops::kPoolLabel, pool);
  map.mutable_json()["data"] = {{"profile.json", profile.dump()}};
  return map;
}

}  // namespace

Ended Shell(const std::string& line) {
  const std::string command = "cd '" + Variable("MEDLEY_SOURCE_DIR") + "' && export PATH='" +
                              Variable("MEDLEY_BIN_DIR") + "':\"$PATH\" && { " + line + "; } 2>&1";
  Ended ended;
  FILE* pipe = popen(("timeout 60 bash -c \"$(cat <<'END'\n" + command + "\nEND\n)\"").c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) ended.output.append(buffer, n);
  const int code = pclose(pipe);
  ended.status = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
  return ended;
}

void ScriptedLogs::Write(const std::string& pod, const std::string& line) {
  base::MutexLock lock(mutex_);
  logs_[pod].lines.push_back(line);
  changed_.NotifyAll();
}

void ScriptedLogs::End(const std::string& pod) {
  base::MutexLock lock(mutex_);
  logs_[pod].ended = true;
  changed_.NotifyAll();
}

void ScriptedLogs::Cut(const std::string& pod) {
  base::MutexLock lock(mutex_);
  ++logs_[pod].cuts;
  changed_.NotifyAll();
}

absl::Status ScriptedLogs::ReadLog(const kube::Key& pod, const localcluster::LogOptions& options, std::stop_token stop,
                                   const std::function<bool(std::string_view)>& sink) {
  size_t next = 0;
  int cuts = 0;
  {
    base::MutexLock lock(mutex_);
    if (!logs_.contains(pod.name)) return base::NotFound("no log of {}", pod.name);
    const Log& log = logs_[pod.name];
    cuts = log.cuts;
    if (options.tail_lines && static_cast<size_t>(*options.tail_lines) < log.lines.size()) {
      next = log.lines.size() - static_cast<size_t>(*options.tail_lines);
    }
  }
  while (!stop.stop_requested()) {
    std::string text;
    bool over = false;
    {
      base::MutexLock lock(mutex_);
      const Log& log = logs_[pod.name];
      const auto more = [&] { return next < log.lines.size() || log.ended || log.cuts != cuts; };
      if (options.follow && !changed_.WaitFor(mutex_, stop, base::seconds(30), more)) break;
      for (; next < log.lines.size(); ++next) {
        const std::string& line = log.lines[next];
        if (options.since && *base::ParseTime(line.substr(0, line.find(' '))) < *options.since) continue;
        text += line + "\n";
      }
      over = log.ended || log.cuts != cuts || !options.follow;
    }
    if (!text.empty() && !sink(text)) break;
    if (over) break;
  }
  return absl::OkStatus();
}

ClusterTest::ClusterTest(bool installed)
    : folder_(*base::MakeTempDir("medley-cli-")), server_(kube::ServerKind::kEmbedded, clock_, Options(installed)) {
  server_.WriteKubeconfig(folder_ / "kubeconfig");
  server_.embedded()->SetLogReader(&logs_);
}

ClusterTest::~ClusterTest() {
  server_.embedded()->SetLogReader(nullptr);
  base::RemoveTempDir(folder_);
}

Cluster ClusterTest::Connected() {
  Cluster cluster;
  cluster.client = std::make_unique<kube::HttpClient>(server_.config(), clock_, 1);
  cluster.ns = server_.ns();
  return cluster;
}

void ClusterTest::Put(const kube::Resource& resource, const kube::Object& object) {
  kube::Object mine = object;
  Json& metadata = mine.mutable_json()["metadata"];
  for (const char* field : {"uid", "generation", "creationTimestamp"}) metadata.erase(field);
  if (resource.namespaced) metadata["namespace"] = server_.ns();
  mine.mutable_json()["apiVersion"] = resource.ApiVersion();
  mine.mutable_json()["kind"] = resource.kind;
  mine.mutable_json().erase("status");
  const auto made = server_.client().Create(resource, mine);
  ASSERT_TRUE(made.ok()) << base::ToString(made.status());
  if (!object.At("/status").is_null()) PutStatus(resource, made->key(), object.At("/status"));
}

void ClusterTest::PutStatus(const kube::Resource& resource, const kube::Key& key, const Json& status) {
  const auto put = server_.client().Patch(resource, key, kube::PatchType::kMerge, {{"status", status}}, {}, "status");
  ASSERT_TRUE(put.ok()) << base::ToString(put.status());
}

void ClusterTest::PutRunningJob() {
  Json status = testing_objects::RunningStatus();
  for (Json& condition : status["conditions"]) condition["observedGeneration"] = 1;
  status["observedGeneration"] = 1;
  // The programs use the real clock.
  status["startTime"] = base::FormatTime(clock_.Now() - base::seconds(2400));
  Put(ops::TrainingJobs(), testing_objects::Job(status));
  for (const kube::Object& pool : testing_objects::Pools()) Put(ops::ResourcePools(), pool);
  const auto object = server_.client().Get(ops::TrainingJobs(), {server_.ns(), "adult"});
  ASSERT_TRUE(object.ok());
  const auto job = ops::TrainingJob::FromObject(*object);
  ASSERT_TRUE(job.ok());
  const std::string hash = model::ProfileHash(job->spec);
  Put(kube::resources::ConfigMaps(), ProfileMap(hash, "cpu-spot", 0.05, true));
  Put(kube::resources::ConfigMaps(), ProfileMap(hash, "v100-spot", 0.004, false));
  Put(kube::resources::ConfigMaps(), ops::PlanConfigMap(*job, testing_objects::Record()));
  kube::Object event = testing_objects::Event("2026-11-21T12:07:00Z", "Rescaled", "generation 3 -> 4");
  event.mutable_json()["metadata"] = {{"name", "adult.1"}};
  event.mutable_json()["involvedObject"]["uid"] = object->uid();
  event.mutable_json()["involvedObject"]["namespace"] = server_.ns();
  Put(kube::resources::Events(), event);
}

void ClusterTest::PutPod(const std::string& name, const char* role, const char* stage, const char* state) {
  kube::Object pod = testing_objects::Pod(name, role, "cpu-spot", stage,
                                          {{"phase", "Running"},
                                           {"containerStatuses",
                                            {{{"name", "worker"},
                                              {"image", "i"},
                                              {"imageID", ""},
                                              {"ready", true},
                                              {"restartCount", 0},
                                              {"state", {{state, Json::object()}}}}}}});
  const auto job = server_.client().Get(ops::TrainingJobs(), {server_.ns(), "adult"});
  ASSERT_TRUE(job.ok());
  pod.mutable_json()["metadata"]["ownerReferences"][0]["uid"] = job->uid();
  pod.mutable_json()["spec"] = {{"containers", {{{"name", "worker"}, {"image", "i"}}}}};
  Put(kube::resources::Pods(), pod);
}

}  // namespace medley::cli
