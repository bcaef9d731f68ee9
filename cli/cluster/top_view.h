// `medley top`: what all jobs and pools do and cost, from their objects. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::cli {

struct TopJob {
  std::string ns;
  std::string name;
  std::string status;       // the phase
  std::string trouble;      // "Infeasible: ..." while it stands still
  double throughput = 0;    // samples/s measured; 0: nothing runs
  double goal = 0;          // 0: none
  double usd_per_hour = 0;  // of what runs; 0: nothing does
  double spent_usd = 0;
  double saved_usd = 0;
  int progress_percent = -1;  // -1: not known
  double remaining_seconds = -1;
  int64_t generation = 0;
  int restarts = 0;
  std::string plan;  // one line
  std::string age;
};

struct TopPool {
  std::string name;
  std::string cls;
  double usd_per_unit_hour = 0;  // 0: not known
  std::string price_source;
  std::string price_age;
  bool seen = false;  // by the operator; else units are not known but for the limit
  int limit = 0;
  int capacity = 0;
  int used = 0;
  int free = 0;
  std::string trouble;  // "NoNodes: ..."
};

struct TopView {
  std::vector<TopJob> jobs;    // by namespace and name
  std::vector<TopPool> pools;  // by name
  bool pools_known = true;     // false: this user may not see them
};

TopView TakeTop(const std::vector<kube::Object>& jobs, const std::vector<kube::Object>& pools, base::WallTime now);

// Jobs, pools and a line of sums. `namespaces`: with that column. `width`: columns at most, 0 for
// any.
std::vector<std::string> TopLines(const TopView& view, bool namespaces, int width);

// {"jobs": [...], "pools": [...], "total": {...}}
std::string TopJson(const TopView& view);

}  // namespace medley::cli
