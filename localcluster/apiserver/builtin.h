// What the built-in kinds do beyond their schema: defaults, checks, immutable parts. Pure.
#pragma once

#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/registry.h"

namespace medley::kube::apiserver {

// Fields that the real server fills in when an object is created. `serial` numbers cluster addresses.
void DefaultBuiltin(const ResourceInfo& info, Json* object, uint64_t serial);

// What the schema cannot say. `old` is null on create.
void ValidateBuiltin(const ResourceInfo& info, const Json* old, const Json& object, FieldErrors* errors);

// CRD: the rules of a CustomResourceDefinition, and the status that says it is served.
void ValidateCrd(const Json& crd, FieldErrors* errors);
void SetCrdStatus(Json* crd, const std::string& now);

std::string Base64(std::string_view bytes);

// RFC 1123: a DNS label ("a-b") or subdomain ("a.b-c").
bool IsDnsLabel(std::string_view name);
bool IsDnsSubdomain(std::string_view name);
void ValidateName(const ResourceInfo& info, const std::string& name, FieldErrors* errors);
// Labels and annotations: syntax and size.
void ValidateMetadata(const Json& metadata, FieldErrors* errors);

}  // namespace medley::kube::apiserver
