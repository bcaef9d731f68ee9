#include "localcluster/apiserver/api_error.h"

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include <set>

#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr char kPayload[] = "medley.dev/embedded-status";

kube::Json Details(const kube::Resource& resource, std::string_view name, bool kind = false) {
  kube::Json details = {{"name", name}, {"kind", kind ? resource.kind : resource.plural}};
  if (!resource.group.empty()) details["group"] = resource.group;
  return details;
}

std::string Qualified(const kube::Resource& resource, std::string_view first) {
  return resource.group.empty() ? std::string(first) : fmt::format("{}.{}", first, resource.group);
}

}  // namespace

absl::Status ApiError(int code, std::string_view reason, std::string_view message, kube::Json details) {
  kube::Json body = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", kube::Json::object()},
                     {"status", "Failure"}, {"message", message}, {"reason", reason},
                     {"code", code}};
  if (!details.is_null()) body["details"] = std::move(details);
  absl::Status status = base::MakeStatus(kube::StatusCodeOf(code, reason), message);
  status.SetPayload(kPayload, absl::Cord(kube::Dump(body)));
  return status;
}

absl::Status BadRequest(std::string_view message) { return ApiError(400, "BadRequest", message); }

absl::Status NotFoundError(const kube::Resource& resource, std::string_view name) {
  return ApiError(404, "NotFound", fmt::format("{} \"{}\" not found", Qualified(resource, resource.plural), name),
                  Details(resource, name));
}

absl::Status AlreadyExistsError(const kube::Resource& resource, std::string_view name) {
  return ApiError(409, "AlreadyExists",
                  fmt::format("{} \"{}\" already exists", Qualified(resource, resource.plural), name),
                  Details(resource, name));
}

absl::Status ConflictError(const kube::Resource& resource, std::string_view name, std::string_view message) {
  return ApiError(409, "Conflict",
                  fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", Qualified(resource, resource.plural),
                              name, message),
                  Details(resource, name));
}

absl::Status ForbiddenError(const kube::Resource& resource, std::string_view name, std::string_view message) {
  return ApiError(403, "Forbidden",
                  fmt::format("{} \"{}\" is forbidden: {}", Qualified(resource, resource.plural), name, message),
                  Details(resource, name));
}

absl::Status InvalidError(const kube::Resource& resource, std::string_view name, const kube::FieldErrors& errors) {
  std::string sentences;
  std::set<std::string> said;
  kube::Json causes = kube::Json::array();
  for (const kube::FieldError& error : errors) {
    const std::string sentence = error.field + ": " + error.what;
    if (said.insert(sentence).second) sentences += (sentences.empty() ? "" : ", ") + sentence;
    causes.push_back({{"reason", error.reason}, {"message", error.what}, {"field", error.field}});
  }
  if (said.size() > 1) sentences = "[" + sentences + "]";
  kube::Json details = Details(resource, name, true);
  details["causes"] = std::move(causes);
  return ApiError(422, "Invalid",
                  fmt::format("{} \"{}\" is invalid: {}", Qualified(resource, resource.kind), name, sentences),
                  std::move(details));
}

absl::Status ExpiredError(std::string_view message) { return ApiError(410, "Expired", message); }

absl::Status MethodNotAllowed(std::string_view message) { return ApiError(405, "MethodNotAllowed", message); }

absl::Status TooLargeVersion(uint64_t asked, uint64_t current) {
  return ApiError(
      504, "Timeout", fmt::format("Timeout: Too large resource version: {}, current: {}", asked, current),
      {{"causes",
        kube::Json::array({{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}}})},
       {"retryAfterSeconds", 1}});
}

kube::Json StatusObject(const absl::Status& status) {
  if (auto payload = status.GetPayload(kPayload)) {
    kube::Json body = kube::Json::parse(std::string(*payload), nullptr, false);
    if (body.is_object()) return body;
  }
  const bool bad = status.code() == absl::StatusCode::kInvalidArgument;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", kube::Json::object()},
          {"status", "Failure"},
          {"message", base::Message(status)},
          {"reason", bad ? "BadRequest" : "InternalError"},
          {"code", bad ? 400 : 500}};
}

int HttpCodeOf(const absl::Status& status) { return StatusObject(status).value("code", 500); }

}  // namespace medley::localcluster::apiserver
