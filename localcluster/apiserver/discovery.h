// Discovery documents, plain and aggregated, that list what this server serves. Pure functions of the registry.
#pragma once

#include <string>

#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {

kube::Json CoreVersions(const std::string& address);  // /api
kube::Json GroupList(const Registry& registry);       // /apis
// /apis/GROUP; null if the group does not exist.
kube::Json Group(const Registry& registry, const std::string& group);
// /api/v1 and /apis/GROUP/VERSION; null if the version does not exist.
kube::Json ResourceList(const Registry& registry, const std::string& group, const std::string& version);
// An APIGroupDiscoveryList of apidiscovery.k8s.io/`version`: the core group, or all other groups.
kube::Json Aggregated(const Registry& registry, bool core, const std::string& version);
kube::Json VersionInfo();  // /version

}  // namespace medley::localcluster::apiserver
