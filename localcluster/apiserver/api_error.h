// Errors of the API: an absl::Status that carries the HTTP code and the content of the metav1.Status.
// All functions are pure.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "kube/object.h"
#include "kube/schema/field_error.h"

namespace medley::localcluster::apiserver {

// `details` may be null.
absl::Status ApiError(int code, std::string_view reason, std::string_view message, kube::Json details = nullptr);

absl::Status BadRequest(std::string_view message);
absl::Status NotFoundError(const kube::Resource& resource, std::string_view name);
absl::Status AlreadyExistsError(const kube::Resource& resource, std::string_view name);
absl::Status ConflictError(const kube::Resource& resource, std::string_view name, std::string_view message);
absl::Status ForbiddenError(const kube::Resource& resource, std::string_view name, std::string_view message);
absl::Status InvalidError(const kube::Resource& resource, std::string_view name, const kube::FieldErrors& errors);
absl::Status ExpiredError(std::string_view message);
absl::Status MethodNotAllowed(std::string_view message);
// The error for a resourceVersion that this server has not reached.
absl::Status TooLargeVersion(uint64_t asked, uint64_t current);

// The HTTP code and body of an error. A Status without a payload is mapped by its code.
int HttpCodeOf(const absl::Status& status);
kube::Json StatusObject(const absl::Status& status);

}  // namespace medley::localcluster::apiserver
