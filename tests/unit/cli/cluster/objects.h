// A job, pools, pods, Events and ConfigMaps as an API server returns them, for tests of cli/cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/story.h"
#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/records/plan_record.h"

namespace medley::cli::testing_objects {

using kube::Json;

inline base::WallTime Now() { return *base::ParseTime("2026-11-21T12:10:00Z"); }

inline Json Condition(const char* type, const char* status, const char* reason, const char* message) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", "2026-11-21T12:00:00Z"}};
}

inline kube::Object JobWithoutStatus() {
  return kube::Object(Json::parse(R"({
    "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "adult", "namespace": "team", "uid": "u-1", "generation": 2,
                 "creationTimestamp": "2026-11-21T11:00:00Z"},
    "spec": {"model": {"name": "ctrdnn", "parameters": {"embeddingDim": 16, "hidden": [400]}},
      "data": {"train": {"uri": "file:///data/a.csv", "format": "csv"},
               "schema": {"label": {"column": 2}, "categorical": [0], "numeric": [1]}},
      "training": {"epochs": 3, "batchSize": 512},
      "objective": {"minThroughput": 20000, "deadline": "2h", "budgetUsd": "5", "maxUsdPerHour": "12"},
      "resources": {"pools": ["cpu-spot", "v100-spot"]}}})"));
}

inline Json RunningStatus() {
  Json status = Json::parse(R"({
    "observedGeneration": 2, "phase": "Running", "replicas": 5, "restarts": 1, "startTime": "2026-11-21T11:30:00Z",
    "plan": {"generation": 4, "planner": "exact", "summary": "emb@4xcpu-spot | fc1..loss@1xv100-spot + 2 servers@cpu-spot",
      "stages": [{"layers": "0-0", "pool": "cpu-spot", "units": 4, "throughput": 20450.2},
                 {"layers": "1-2", "pool": "v100-spot", "units": 1, "throughput": 20110}],
      "servers": 2, "serverPool": "cpu-spot", "usdPerHour": "2.58", "usdTotal": "1.37", "throughput": 20110,
      "alternatives": [{"label": "cpu-spot only", "throughput": 20003, "usdPerHour": "4.1", "usdTotal": "2.2"},
                       {"label": "v100-spot only", "reason": "limit of v100-spot: needed 9, available 8"}],
      "catalogRevision": 17, "priceTime": "2026-11-21T12:05:00Z"},
    "observed": {"throughput": 20874.3, "samples": 1203200, "samplesTotal": 2930400, "step": 2350, "progressPercent": 41,
                 "epoch": "2/3", "estimatedRemainingSeconds": 1720, "loss": 0.3312, "metrics": {"auc": 0.9012, "logLoss": 0.301}},
    "cost": {"spentUsd": "0.83", "usdPerMillionSamples": "0.69", "savedUsd": "0.41"},
    "lastRescale": {"fromGeneration": 3, "toGeneration": 4, "reason": "PriceChanged", "pauseSeconds": 0.41,
                    "at": "2026-11-21T12:07:00Z"},
    "rescales": [{"fromGeneration": 2, "toGeneration": 3, "reason": "MemberLost", "pauseSeconds": 0.9, "recovery": true,
                  "lostSteps": 2, "at": "2026-11-21T11:50:00Z"},
                 {"fromGeneration": 3, "toGeneration": 4, "reason": "PriceChanged", "pauseSeconds": 0.41,
                  "at": "2026-11-21T12:07:00Z"}]})");
  status["conditions"] = {Condition("Planned", "True", "PlanFound", "emb@4xcpu-spot"),
                          Condition("PodsReady", "True", "AllRunning", "all 7 pods of the plan run"),
                          Condition("Running", "True", "GenerationCommitted", "samples are trained")};
  return status;
}

inline kube::Object Job(Json status) {
  kube::Object job = JobWithoutStatus();
  job.mutable_json()["status"] = std::move(status);
  return job;
}

inline kube::Object Pool(const char* name, const char* cls, double price, int capacity, int used, int free) {
  return kube::Object(Json{
      {"apiVersion", "medley.dev/v1alpha1"},
      {"kind", "ResourcePool"},
      {"metadata", {{"name", name}}},
      {"spec",
       {{"class", cls},
        {"limit", 32},
        {"unit", {{"resources", {{"cpu", "1"}}}}},
        {"price",
         {{"offering", {{"provider", "aws"}, {"region", "r"}, {"instanceType", name}, {"capacityType", "spot"}}}}}}},
      {"status",
       {{"usdPerUnitHour", std::to_string(price)},
        {"priceTime", "2026-11-21T12:05:00Z"},
        {"priceSource", "feed"},
        {"conditions",
         {Condition("Priced", "True", "CatalogPrice", "known"),
          Condition("Available", "True", "UnitsExist", "nodes hold units")}},
        {"units", {{"limit", 32}, {"capacity", capacity}, {"used", used}, {"free", free}}}}}});
}

inline std::vector<kube::Object> Pools() {
  return {Pool("v100-spot", "GPU", 2.42, 8, 1, 7), Pool("cpu-spot", "CPU", 0.04, 16, 6, 10)};
}

inline kube::Object Pod(const std::string& name, const char* role, const char* pool, const char* stage, Json status) {
  kube::Object pod(Json{{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"metadata",
                         {{"name", name},
                          {"namespace", "team"},
                          {"uid", "p-" + name},
                          {"labels",
                           {{"medley.dev/job-name", "adult"},
                            {"medley.dev/role", role},
                            {"medley.dev/pool", pool},
                            {"medley.dev/stage", stage}}},
                          {"ownerReferences",
                           {{{"apiVersion", "medley.dev/v1alpha1"},
                             {"kind", "TrainingJob"},
                             {"name", "adult"},
                             {"uid", "u-1"},
                             {"controller", true}}}}}},
                        {"status", std::move(status)}});
  return pod;
}

inline ops::PlanRecord Record() {
  ops::PlanRecord record;
  record.plan.job_uid = "u-1";
  record.plan.generation = 4;
  record.plan.stages = {{{{0, 1}}, {{"cpu-spot", 4, 1}}, {}, 0}, {{{1, 3}}, {{"v100-spot", 1, 1}}, {}, 0}};
  record.plan.servers = model::Servers{"cpu-spot", 2};
  record.plan.estimate = {20110, 2.58, 1.37, 1912, {}};
  record.plan.provenance = {"exact", 1, 17, "2026-11-21T12:05:00Z", "id", 1.37, 0};
  record.slots = {{"adult-0-cpu-spot-0", ops::Role::kTrainer, "cpu-spot", 0, 0},
                  {"adult-0-cpu-spot-1", ops::Role::kTrainer, "cpu-spot", 0, 1},
                  {"adult-0-cpu-spot-2", ops::Role::kTrainer, "cpu-spot", 0, 2},
                  {"adult-0-cpu-spot-3", ops::Role::kTrainer, "cpu-spot", 0, 3},
                  {"adult-0-v100-spot-0", ops::Role::kTrainer, "v100-spot", 1, 0},
                  {"adult-server-0", ops::Role::kServer, "cpu-spot", 0, 0},
                  {"adult-server-1", ops::Role::kServer, "cpu-spot", 0, 1}};
  record.usd_per_unit_hour = {{"cpu-spot", 0.04}, {"v100-spot", 2.34}};
  record.layer_names = {"emb", "fc1", "loss"};
  record.stage_throughput = {20450.2, 20110};
  record.reason = ops::Reason::kPriceChanged;
  record.accepted_at = "2026-11-21T12:06:00Z";
  return record;
}

inline kube::Object Event(const char* at, const char* reason, const char* message, const char* kind = "TrainingJob",
                          const char* name = "adult") {
  return kube::Object(Json{{"involvedObject", {{"kind", kind}, {"name", name}, {"uid", "u-1"}}},
                           {"reason", reason},
                           {"message", message},
                           {"count", 1},
                           {"lastTimestamp", at}});
}

inline Story RunningStory() {
  Story story;
  story.job = Job(RunningStatus());
  story.pools = Pools();
  story.pods = {Pod("adult-coordinator", "coordinator", "", "", {{"phase", "Running"}})};
  story.events = {
      Event("2026-11-21T12:06:00Z", "ReplanConsidered", "PriceChanged: move (Saves): 1.37 against 1.90 USD"),
      Event("2026-11-21T12:07:00Z", "Rescaled", "generation 3 -> 4: training stood still for 0.410 s")};
  story.record = Record();
  return story;
}

}  // namespace medley::cli::testing_objects
