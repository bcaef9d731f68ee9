#include "cli/run/manifest_check.h"

#include <memory>
#include <vector>

#include "cli/run/schema_words.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "kube/schema/shape.h"
#include "localcluster/apiserver/builtin_schemas.h"
#include "localcluster/apiserver/registry.h"
#include "operator/api/crds.h"

namespace medley::cli {
namespace {

using kube::UnknownField;

constexpr size_t kMostNamed = 10;
constexpr size_t kMostFound = 100;
constexpr const char* kVolume = "io.k8s.api.core.v1.Volume";
constexpr const char* kPodSpec = "io.k8s.api.core.v1.PodSpec";

// The parts of our kinds that may be anything by the CRD's schema, and the types of Kubernetes that they are.
struct OpenPart {
  const char* path;  // below the object
  const char* type;
};
constexpr OpenPart kOpenParts[] = {
    {"/spec/data/volume", kVolume},           {"/spec/checkpoint/volume", kVolume},
    {"/spec/template/spec", kPodSpec},        {"/spec/template/coordinator/spec", kPodSpec},
    {"/spec/template/server/spec", kPodSpec}, {"/spec/template/trainer/spec", kPodSpec},
};

// "spec.data.volume" of "/spec/data/volume".
std::string Dotted(std::string path) {
  std::replace(path.begin(), path.end(), '/', '.');
  return path.substr(1);
}

void CheckOpenPart(const kube::Object& object, const OpenPart& part, const kube::Definitions& definitions,
                   std::vector<UnknownField>& unknown) {
  kube::Json value = object.At(part.path);
  if (!value.is_object()) return;
  if (part.type == kVolume) value.erase("mountPath");
  std::vector<UnknownField> found;
  kube::Prune(&value, definitions.Find(part.type), Dotted(part.path), &found);
  for (UnknownField& field : found) {
    const bool patch = field.path.find(".$") != std::string::npos;  // a directive of a strategic merge patch
    if (!patch) unknown.push_back(std::move(field));
  }
}

absl::Status Refuse(const kube::Object& object, const std::vector<std::string>& wrong) {
  std::string list;
  for (size_t i = 0; i < wrong.size() && i < kMostNamed; ++i) list += (i > 0 ? "\n  " : "") + wrong[i];
  if (wrong.size() > kMostNamed) list += fmt::format("\n  and {} more", wrong.size() - kMostNamed);
  return base::InvalidArgument("{} {}: {}", object.kind(), object.key().name, list);
}

}  // namespace

absl::Status CheckFields(const kube::Object& object) {
  const kube::Definitions definitions = localcluster::apiserver::BuiltinDefinitions();
  localcluster::apiserver::Registry registry(definitions);
  for (const auto& [name, text] : ops::BundledCrds()) {
    MEDLEY_ASSIGN_OR_RETURN(const kube::Json crd, document::Parse(text));
    registry.SetCrd(crd);
  }
  const std::string api_version = object.api_version();
  const size_t slash = api_version.find('/');
  const localcluster::apiserver::InfoPtr info =
      slash == std::string::npos
          ? nullptr
          : registry.FindKind(api_version.substr(0, slash), api_version.substr(slash + 1), object.kind());
  if (info == nullptr || info->builtin) {
    return base::InvalidArgument("{} {}: apiVersion {} has no such kind; it must be medley.dev/v1alpha1", object.kind(),
                                 object.key().name, api_version);
  }
  std::vector<UnknownField> unknown;
  kube::Json copy = object.json();
  kube::Prune(&copy, info->schema, "", &unknown);
  for (const OpenPart& part : kOpenParts) CheckOpenPart(object, part, definitions, unknown);
  std::vector<std::string> wrong;
  for (const UnknownField& field : unknown) wrong.push_back(field.path + ": unknown field" + field.hint);
  for (const char* part : {"spec", "status"}) {
    const auto value = copy.find(part);
    if (value == copy.end()) continue;
    for (std::string& sentence : WrongValues(*value, info->schema.Field(part), part, kMostFound)) {
      wrong.push_back(std::move(sentence));
    }
  }
  return wrong.empty() ? absl::OkStatus() : Refuse(object, wrong);
}

}  // namespace medley::cli
