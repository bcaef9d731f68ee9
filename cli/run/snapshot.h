// What a person sees of a run, taken from the API's objects. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/api/job_status.h"

namespace medley::cli {

struct PoolView {
  std::string name;
  double usd_per_unit_hour = 0;  // 0: not known
  int used = 0;
  int limit = 0;
};

struct Snapshot {
  std::string phase;
  std::optional<ops::PlanStatus> plan;
  std::vector<PoolView> pools;
  ops::ObservedStatus observed;
  ops::CostStatus cost;
  std::vector<ops::RescaleStatus> rescales;  // generation switches, in order
  double progress_percent = 0;               // with its fraction, unlike the status's
  bool rescaling = false;                    // a new plan is not in force yet
  bool complete = false;
  bool failed = false;
  // The last condition's sentence that says why nothing goes on ("" when things go on).
  std::string trouble;
};

Snapshot TakeSnapshot(const kube::Object& job, const std::vector<kube::Object>& pools);

}  // namespace medley::cli
