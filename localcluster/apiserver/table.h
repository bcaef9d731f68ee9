// Renders objects as rows of a meta.k8s.io/v1 Table, which `kubectl get` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {

// `include` selects the content of each row's `object`: None, Metadata (the default) or Object.
kube::Json MakeTable(const ResourceInfo& info, const std::vector<const kube::Json*>& objects, base::WallTime now,
                     const std::string& include);

// "5s", "3m20s", "4h", "2d3h": ages as kubectl prints them.
std::string HumanDuration(base::nanoseconds age);

// The value at a simple JSONPath (".spec.a", ".status.conditions[?(@.type==\"Ready\")].status",
// "[0]", "['a.b']"), or null.
kube::Json JsonPath(const kube::Json& object, const std::string& path);

}  // namespace medley::localcluster::apiserver
