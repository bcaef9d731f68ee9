// The state of a run as `medley run` shows it, taken from the API's objects. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/api/job_status.h"

namespace medley::cli {

struct PoolView {
  std::string name;
  double usd_per_unit_hour = 0;  // 0: unknown
  int used = 0;
  int limit = 0;
};

struct Snapshot {
  std::string phase;
  std::optional<ops::PlanStatus> plan;
  std::vector<PoolView> pools;
  ops::ObservedStatus observed;
  ops::CostStatus cost;
  std::optional<ops::GoodputStatus> goodput;
  std::vector<ops::RescaleStatus> rescales;  // generation switches, in order
  double progress_percent = 0;               // not rounded, unlike the status's
  bool of_program = false;                   // the job has no model: its result is what the program saves
  bool rescaling = false;                    // whether a new plan is being prepared
  bool complete = false;
  bool failed = false;
  std::string refusal;        // reason of Planned=False; empty: the job is planned, or may still be
  std::string stopped_early;  // why the job is complete before its last epoch; empty: it is not
  std::string failure;        // reason of Failed=True; empty: it has not failed
  std::string problem;        // why the job failed or has no plan, from its conditions; empty: no problem
};

Snapshot TakeSnapshot(const kube::Object& job, const std::vector<kube::Object>& pools);

}  // namespace medley::cli
