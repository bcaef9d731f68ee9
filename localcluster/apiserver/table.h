// Renders objects as rows of a meta.k8s.io/v1 Table, which `kubectl get` prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/apiserver/registry.h"

namespace medley::kube::apiserver {

// `include` selects the content of each row's `object`: None, Metadata (the default) or Object.
Json MakeTable(const ResourceInfo& info, const std::vector<const Json*>& objects, base::WallTime now,
               const std::string& include);

// "5s", "3m20s", "4h", "2d3h": ages as kubectl prints them.
std::string HumanDuration(base::nanoseconds age);

// The value at a simple JSONPath (".spec.a", ".status.conditions[?(@.type==\"Ready\")].status",
// "[0]", "['a.b']"), or null.
Json JsonPath(const Json& object, const std::string& path);

}  // namespace medley::kube::apiserver
