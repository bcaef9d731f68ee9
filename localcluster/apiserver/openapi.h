// OpenAPI documents: v3 for kubectl explain and for kubectl's check of the server's features, v2 (JSON and protobuf)
// for clients that validate and merge by it.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "common/http_server/message.h"
#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {

using http_server::HttpRequest;
using http_server::HttpResponse;

// `parts`: the path's components ("openapi", "v3", "apis", "G", "V"). Errors: 404.
absl::StatusOr<std::optional<HttpResponse>> OpenApiDocument(const Registry& registry,
                                                            const std::vector<std::string>& parts,
                                                            const HttpRequest& request);

kube::Json OpenApiV3(const Registry& registry, const std::string& group, const std::string& version);
kube::Json OpenApiV2(const Registry& registry);
// Encodes a swagger 2.0 document as gnostic's openapi.v2.Document in protobuf's wire format.
std::string OpenApiV2Protobuf(const kube::Json& document);

}  // namespace medley::localcluster::apiserver
