#include "tests/bench/cluster/bench_jobs.h"

#include <fmt/format.h>

#include <cstdlib>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/fingerprint.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"

namespace medley::bench {
namespace {

using kube::Json;

constexpr char kPrefix[] = "job";

Json JobSpec() {
  return Json::parse(R"({
    "model": {"name": "ctrdnn"}, "training": {"epochs": 1000},
    "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
             "schema": {"label": {"column": 0}, "categorical": [1, 2], "numeric": [3]}},
    "objective": {"minThroughput": 45000},
    "planner": {"name": "exact", "timeBudget": "60s"},
    "resources": {"pools": ["cpu", "gpu"]},
    "runPolicy": {"suspend": true}})");
}

model::Profile ProfileOn(const std::string& pool) {
  model::Profile profile;
  profile.id = "bench";
  profile.profile_batch_size = 512;
  profile.samples_per_epoch = 1'000'000;
  for (const char* name : {"emb", "fc", "loss"}) {
    model::Layer layer;
    layer.name = name;
    layer.kind = "OTHER";
    model::LayerProfile numbers;
    numbers.resource_type = pool;
    // Three units of "cpu", or one of "gpu", reach the required throughput of the job.
    numbers.compute_seconds = pool == "gpu" ? 0.003 : 0.01;
    numbers.compute_parallel = 1;
    layer.profiles.push_back(numbers);
    profile.model.layers.push_back(layer);
  }
  return profile;
}

}  // namespace

std::string NamespaceName(int index) { return fmt::format("bench-{}", index % kNamespaces); }

kube::Key JobKey(int index) { return {NamespaceName(index), JobName(index)}; }

std::string JobName(int index) { return fmt::format("{}{:05}", kPrefix, index); }

int JobIndex(const std::string& pod) {
  const std::string prefix = kPrefix;
  if (pod.compare(0, prefix.size(), prefix) != 0) return -1;
  return std::atoi(pod.substr(prefix.size(), 5).c_str());
}

kube::Object BenchNode(int index) {
  kube::Object node(kube::resources::Nodes(), {"", fmt::format("bench-{:03}", index)});
  node.SetLabel("medley.dev/bench", "true");
  node.SetLabel("kubernetes.io/hostname", node.key().name);
  return node;
}

kube::Json BenchNodeStatus() {
  const Json room = {{"cpu", "1000"}, {"memory", "4Ti"}, {"example.com/gpu", "1000"}, {"pods", "1000"}};
  return {{"status",
           {{"capacity", room},
            {"allocatable", room},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}, {"reason", "Bench"}}})}}}};
}

kube::Object BenchPool(const std::string& name) {
  kube::Object pool(ops::ResourcePools(), {"", name});
  const bool gpu = name == "gpu";
  Json spec = {{"class", gpu ? "GPU" : "CPU"},
               {"limit", 100'000},
               {"nodeSelector", {{"medley.dev/bench", "true"}}},
               {"unit", {{"resources", {{gpu ? "example.com/gpu" : "cpu", "1"}}}}}};
  if (gpu) {
    spec["price"]["offering"] = {
        {"provider", "bench"}, {"region", "r"}, {"instanceType", "g1"}, {"capacityType", "spot"}};
  } else {
    spec["price"]["usdPerUnitHour"] = "0.04";
  }
  pool.mutable_json()["spec"] = std::move(spec);
  return pool;
}

kube::Object BenchJob(int index, bool follows_prices) {
  kube::Object job(ops::TrainingJobs(), JobKey(index));
  Json spec = JobSpec();
  spec["elasticity"] = {{"replan", {{"onPriceChange", follows_prices}, {"minSaving", "1%"}, {"cooldown", "0s"}}}};
  job.mutable_json()["spec"] = std::move(spec);
  return job;
}

kube::Object BenchProfile(const std::string& ns, const std::string& pool) {
  profile::v1::Profile proto;
  model::ToProto(ProfileOn(pool), proto);
  return ops::ProfileConfigMap(ns, model::ProfileHash(JobSpec()), pool, model::ToJson(proto));
}

kube::Object OtherPod(int index, int nodes) {
  kube::Object pod(kube::resources::Pods(), {NamespaceName(index), fmt::format("other{:05}", index)});
  pod.mutable_json()["spec"] = {
      {"nodeName", fmt::format("bench-{:03}", index % nodes)},
      {"containers", Json::array({{{"name", "c"}, {"image", "i"}, {"resources", {{"requests", {{"cpu", "100m"}}}}}}})}};
  return pod;
}

std::string PriceFile(double gpu) {
  return fmt::format(
      "entries:\n- {{offering: {{provider: bench, region: r, instanceType: g1, capacityType: "
      "spot}}, "
      "pricePerInstanceHour: {}}}\n",
      gpu);
}

}  // namespace medley::bench
