// What this server serves, as discovery documents, plain and aggregated. Pure functions of the registry.
#pragma once

#include <string>

#include "localcluster/apiserver/registry.h"

namespace medley::kube::apiserver {

Json CoreVersions(const std::string& address);  // /api
Json GroupList(const Registry& registry);       // /apis
// /apis/GROUP; null when there is no such group.
Json Group(const Registry& registry, const std::string& group);
// /api/v1 and /apis/GROUP/VERSION; null when there is none.
Json ResourceList(const Registry& registry, const std::string& group, const std::string& version);
// APIGroupDiscoveryList of apidiscovery.k8s.io/`version`, of the core group or of all others.
Json Aggregated(const Registry& registry, bool core, const std::string& version);
Json VersionInfo();  // /version

}  // namespace medley::kube::apiserver
