#include "cli/run/manifests.h"

#include "cli/run/manifest_check.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::cli {
namespace {

constexpr int64_t kMaxManifestBytes = 16 << 20;

// Makes every hostPath.path that begins with "./" absolute.
void ResolveHostPaths(kube::Json& json, const std::filesystem::path& folder) {
  if (json.is_object()) {
    const auto host_path = json.find("hostPath");
    if (host_path != json.end() && host_path->is_object() && host_path->contains("path") &&
        (*host_path)["path"].is_string()) {
      const auto path = (*host_path)["path"].get<std::string>();
      if (path.starts_with("./")) {
        const std::filesystem::path full = (folder / path).lexically_normal();
        // Without the slash of "./", which messages would show twice.
        (*host_path)["path"] = (full.has_filename() ? full : full.parent_path()).string();
      }
    }
  }
  if (json.is_structured()) {
    for (kube::Json& child : json) ResolveHostPaths(child, folder);
  }
}

// Makes a spec.model.initialFrom that begins with "./" absolute.
void ResolveInitialFrom(kube::Object& job, const std::filesystem::path& folder) {
  const std::string from = job.String("/spec/model/initialFrom");
  if (!from.starts_with("./") && !from.starts_with("../")) return;
  job.mutable_json()["spec"]["model"]["initialFrom"] = (folder / from).lexically_normal().string();
}

// A job of a program runs here without its container. Returns a sentence that says so; empty: it is no such job.
std::string AdaptProgram(kube::Object& job, const std::filesystem::path& folder) {
  if (!job.At("/spec/program").is_object()) return "";
  kube::Json& program = job.mutable_json()["spec"]["program"];
  if (const auto command = program.find("command"); command != program.end() && command->is_array()) {
    for (kube::Json& argument : *command) {
      if (!argument.is_string()) continue;
      const auto text = argument.get<std::string>();
      if (text.starts_with("./") || text.starts_with("../")) argument = (folder / text).lexically_normal().string();
    }
  }
  const std::string image = job.String("/spec/program/image");
  program.erase("image");
  return fmt::format("the program runs without a container, as processes in this machine's environment{}",
                     image.empty() ? "" : ": the image " + image + " is not used");
}

}  // namespace

absl::StatusOr<Manifests> LoadManifests(const std::filesystem::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kMaxManifestBytes));
  auto documents = document::ParseYamlStream(text);
  if (!documents.ok()) return base::Annotate(documents.status(), "reading " + file.string());
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  Manifests manifests;
  int jobs = 0;
  for (kube::Json& document : *documents) {
    if (!document.is_object()) return base::InvalidArgument("{}: a YAML document is not an object", file.string());
    ResolveHostPaths(document, folder);
    kube::Object object(std::move(document));
    if (object.kind().empty() || object.api_version().empty() || object.key().name.empty()) {
      return base::InvalidArgument("{}: a YAML document has no apiVersion, kind or metadata.name", file.string());
    }
    if (object.kind() == "TrainingJob") {
      ResolveInitialFrom(object, folder);
      if (std::string remark = AdaptProgram(object, folder); !remark.empty()) manifests.remarks.push_back(remark);
    }
    const bool ours = object.kind() == "ResourcePool" || object.kind() == "TrainingJob";
    if (ours) MEDLEY_RETURN_IF_ERROR(base::Annotate(CheckFields(object), file.string()));
    if (object.kind() == "ResourcePool") {
      manifests.pools.push_back(std::move(object));
    } else if (object.kind() == "TrainingJob") {
      manifests.job = std::move(object);
      ++jobs;
    } else {
      manifests.others.push_back(std::move(object));
    }
  }
  if (jobs != 1)
    return base::InvalidArgument("{}: the file has {} TrainingJobs, it must have exactly one", file.string(), jobs);
  if (manifests.pools.empty())
    return base::InvalidArgument("{}: the file has no ResourcePool, it must have at least one", file.string());
  if (manifests.job.key().ns.empty()) manifests.job.mutable_json()["metadata"]["namespace"] = "default";
  const std::string scenario = manifests.job.annotation("run.medley.dev/scenario");
  if (!scenario.empty()) manifests.scenario = folder / scenario;
  return manifests;
}

}  // namespace medley::cli
