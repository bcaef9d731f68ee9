// The pool and the number of nodes for a job of another controller. Pure, thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/recommend/ask.h"
#include "operator/recommend/foreign_job.h"

namespace medley::ops::recommend {

// A pool that the job's namespace may use.
struct NodeOffer {
  std::string name;
  int free = 0;                  // units that nobody has
  double usd_per_unit_hour = 0;  // 0: not known
  std::string unavailable;       // why no unit can be had now, a clause; empty: they can
  std::map<std::string, std::string> node_selector;
  kube::Json tolerations = kube::Json::array();
};

struct Choice {
  std::string pool;
  int nodes = 0;
  double usd_per_hour = 0;
  double throughput = 0;  // samples/s of all nodes
  double seconds = 0;     // to the end; 0: the samples are not known
  double usd = 0;         // likewise
  std::map<std::string, std::string> node_selector;
  kube::Json tolerations = kube::Json::array();
  // "4 nodes of pool gpu: 4,700 samples/s, 5.2 USD/h, 30.7 USD in all".
  std::string InWords() const;
};

struct Chosen {
  std::optional<Choice> choice;
  std::string why_not;  // the constraint that comes closest, a sentence; empty with a choice
};

// Every size on every pool is tried: the best by the objective within the bounds; of equally good ones that with fewer
// nodes, then that of the pool first named. One node takes one unit of its pool.
Chosen Choose(const Ask& ask, const ForeignJob& job, const std::vector<NodeOffer>& offers);

}  // namespace medley::ops::recommend
