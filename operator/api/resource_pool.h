// A ResourcePool as the operator reads it. Immutable value.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/model/resource.h"
#include "kube/object.h"
#include "operator/api/pod_template.h"

namespace medley::ops {

enum class PoolScaling { kNodes, kAutoscaled };

struct ResourcePool {
  kube::Object object;
  std::string name;
  model::ResourceClass cls = model::ResourceClass::kCpu;
  std::map<std::string, std::string> unit_resources;  // resource name -> quantity as written
  std::vector<std::pair<std::string, std::string>> unit_env;
  double memory_bytes = 0;  // of one unit; 0: no limit
  std::map<std::string, std::string> node_selector;
  kube::Json tolerations = kube::Json::array();
  PodTemplate pod_template;  // for every pod on the pool, under the templates of the job
  int limit = 0;             // the most units that all jobs together may hold
  PoolScaling scaling = PoolScaling::kNodes;
  double provision_timeout_seconds = 900;  // of kAutoscaled: how long a pod may wait for a node
  std::vector<std::string> namespaces;     // empty: all
  double usd_per_unit_hour = 0;            // 0: the price of `offering` counts
  std::optional<model::Offering> offering;

  bool Allows(std::string_view ns) const;
  bool IsSpot() const { return offering && offering->capacity_type == "spot"; }

  // Errors: InvalidArgument that names the first field of a wrong type or form, or outside of its bounds (bounds.h).
  static absl::StatusOr<ResourcePool> FromObject(const kube::Object& object);
};

}  // namespace medley::ops
