#include "localcluster/apiserver/media_type.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "common/base/text.h"
#include "localcluster/apiserver/api_error.h"

namespace medley::localcluster::apiserver {
namespace {

std::string WithoutParameters(std::string_view content_type) {
  std::string type(base::Trim(content_type.substr(0, content_type.find(';'))));
  for (char& c : type) c = absl::ascii_tolower(static_cast<unsigned char>(c));
  return type;
}

absl::Status UnsupportedMediaType(std::string_view accepted) {
  return ApiError(
      415, "UnsupportedMediaType",
      fmt::format("the body of the request was in an unknown format - accepted media types include: {}", accepted));
}

}  // namespace

absl::StatusOr<BodyType> ObjectBodyType(std::string_view content_type, bool builtin) {
  const std::string type = WithoutParameters(content_type);
  if (type == "application/json" || content_type.empty()) return BodyType::kJson;
  if (type == "application/yaml") return BodyType::kYaml;
  if (type == "application/vnd.kubernetes.protobuf" && builtin) return BodyType::kProtobuf;
  return UnsupportedMediaType(builtin ? "application/json, application/yaml, application/vnd.kubernetes.protobuf"
                                      : "application/json, application/yaml");
}

absl::StatusOr<PatchBody> PatchBodyType(std::string_view content_type, bool builtin) {
  const std::string type = WithoutParameters(content_type);
  if (type == "application/json-patch+json") return PatchBody::kJsonPatch;
  if (type == "application/merge-patch+json") return PatchBody::kMerge;
  if (type == "application/strategic-merge-patch+json" && builtin) return PatchBody::kStrategic;
  if (type == "application/apply-patch+yaml") return PatchBody::kApply;
  return UnsupportedMediaType(
      builtin ? "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, "
                "application/strategic-merge-patch+json"
              : "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
}

}  // namespace medley::localcluster::apiserver
