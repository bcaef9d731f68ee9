// `medley top`: formats throughput and cost of jobs and pools from their objects. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::cli {

struct TopJob {
  std::string ns;
  std::string name;
  std::string status;       // the phase
  std::string problem;      // why it does not train, for example "Infeasible: ..."; empty: no problem
  double throughput = 0;    // measured samples/s; 0: does not train
  double goal = 0;          // samples/s; 0: no goal
  double usd_per_hour = 0;  // cost of its pods; 0: no pods
  double spent_usd = 0;
  double saved_usd = 0;
  std::string epoch;                      // the pass over the data that is trained, as in "3/14"; empty: unknown
  std::optional<double> loss;             // mean training loss of the last steps
  std::map<std::string, double> metrics;  // of the last evaluation
  int progress_percent = -1;              // -1: unknown
  double remaining_seconds = -1;          // -1: unknown
  int64_t generation = 0;
  int restarts = 0;
  std::string plan;  // one line
  std::string age;
};

struct TopPool {
  std::string name;
  std::string cls;
  double usd_per_unit_hour = 0;  // 0: unknown
  std::string price_source;
  std::string price_age;
  bool seen = false;  // whether the operator has processed it; if not, only the limit is known
  int limit = 0;
  int capacity = 0;
  int used = 0;
  int free = 0;
  std::string problem;  // for example "NoNodes: ..."; empty: no problem
};

struct TopView {
  std::vector<TopJob> jobs;    // by namespace and name
  std::vector<TopPool> pools;  // by name
  bool pools_known = true;     // false: this user is not allowed to list pools
};

TopView TakeTop(const std::vector<kube::Object>& jobs, const std::vector<kube::Object>& pools, base::WallTime now);

// Returns a line of sums, the jobs and the pools. `namespaces`: add a column for them. `width`: the most columns; 0: no
// limit.
std::vector<std::string> TopLines(const TopView& view, bool namespaces, int width);

// {"jobs": [...], "pools": [...], "total": {...}}
std::string TopJson(const TopView& view);

}  // namespace medley::cli
