// Behaviour of the built-in kinds that their schema cannot express: defaults, checks, immutable fields. Pure.
#pragma once

#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {

// Sets the fields that the real server fills in on create. `serial` numbers cluster addresses.
void DefaultBuiltin(const ResourceInfo& info, kube::Json* object, uint64_t serial);

// Checks what the schema cannot express. `old` is null on create.
void ValidateBuiltin(const ResourceInfo& info, const kube::Json* old, const kube::Json& object,
                     kube::FieldErrors* errors);

// For CustomResourceDefinitions: their rules, and the status that says that the CRD is served.
void ValidateCrd(const kube::Json& crd, kube::FieldErrors* errors);
void SetCrdStatus(kube::Json* crd, const std::string& now);

std::string Base64(std::string_view bytes);

// RFC 1123: a DNS label ("a-b") or subdomain ("a.b-c").
bool IsDnsLabel(std::string_view name);
bool IsDnsSubdomain(std::string_view name);
void ValidateName(const ResourceInfo& info, const std::string& name, kube::FieldErrors* errors);
// Labels and annotations: syntax and size.
void ValidateMetadata(const kube::Json& metadata, kube::FieldErrors* errors);

}  // namespace medley::localcluster::apiserver
