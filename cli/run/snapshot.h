// What a person sees of a run, taken from the API's objects. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/kube/object.h"

namespace medley::cli {

struct StageView {
  std::string layers;
  std::string pool;
  int units = 0;
  double throughput = 0;  // samples/s that the planner expects of the stage; 0: not said
};

struct AlternativeView {
  std::string label;
  double throughput = 0;
  double usd_per_hour = 0;
  double usd = 0;
  std::string reason;  // why it is not possible
};

struct PlanView {
  int64_t epoch = 0;
  std::string planner;
  std::string summary;
  std::vector<StageView> stages;
  int servers = 0;
  std::string server_pool;
  double throughput = 0;
  double usd_per_hour = 0;
  double usd_total = 0;
  std::vector<AlternativeView> alternatives;
};

struct PoolView {
  std::string name;
  double usd_per_unit_hour = 0;
  int used = 0;
  int limit = 0;
};

struct RescaleView {
  int64_t from_epoch = 0;
  int64_t to_epoch = 0;
  std::string reason;
  double pause_seconds = 0;
  std::string at;
  bool recovery = false;
  int64_t lost_steps = 0;
};

struct ConditionView {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
};

struct Snapshot {
  std::string phase;
  std::vector<ConditionView> conditions;
  std::optional<PlanView> plan;
  std::vector<PoolView> pools;
  double throughput = 0;
  int64_t samples = 0;
  int64_t samples_total = 0;
  double loss = 0;
  double progress_percent = 0;
  std::map<std::string, double> metrics;
  double spent_usd = 0;
  double saved_usd = 0;
  int restarts = 0;
  std::vector<RescaleView> rescales;  // epoch switches, in order
  bool complete = false;
  bool failed = false;
  // The last condition's sentence that says why nothing goes on ("" when things go on).
  std::string trouble;
};

Snapshot TakeSnapshot(const kube::Object& job, const std::vector<kube::Object>& pools);

}  // namespace medley::cli
