#include "localcluster/node/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <system_error>

#include "common/base/file.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/file_access.h"
#include "localcluster/node/mounts.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
using Data = std::map<std::string, std::string>;

constexpr mode_t kAnyMode = 07777;
// On a cluster a volume is in the pod alone. Here other users of the machine could read the files.
constexpr mode_t kOwnerOnly = 0700;

// One part of a path: with a slash or as ".." it would lead to other folders.
bool IsFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

// For the volumes that the node makes itself.
absl::Status MakeFolder(const fs::path& path) { return OpenFolder(path, true).status(); }

// For the host's own paths, in which the user may have links.
absl::Status MakeHostFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return base::ErrnoStatus(error.value(), fmt::format("creating folder '{}'", path.string()));
  return absl::OkStatus();
}

// Every mount of every container. The text of a volume is rewritten by all of them, because the containers share it.
std::vector<Mount> AllMounts(const kube::Object& pod, const std::map<std::string, std::string>& volumes) {
  std::vector<Mount> all;
  for (const char* list : {"containers", "initContainers"}) {
    for (const kube::Json& container : kube::GetArray(pod.At("/spec"), list)) {
      const auto mounts = ContainerMounts(container, volumes);
      if (mounts.ok()) all.insert(all.end(), mounts->begin(), mounts->end());
    }
  }
  return all;
}

// Maps keys to paths in the volume: by the items, or each key to a file of its own name.
absl::StatusOr<std::map<std::string, fs::path>> Layout(const kube::Json& spec, const Data& data) {
  std::map<std::string, fs::path> layout;
  for (const kube::Json& item : kube::GetArray(spec, "items")) {
    const std::string key = kube::GetString(item, "key");
    const fs::path path = fs::path(kube::GetString(item, "path")).lexically_normal();
    if (!data.contains(key)) return base::NotFound("refers to key '{}', which does not exist", key);
    if (path.empty() || path.is_absolute() || path.begin()->string() == "..") {
      return base::InvalidArgument("item path '{}' is not inside the volume", path.string());
    }
    layout[key] = path;
  }
  if (!kube::GetArray(spec, "items").empty()) return layout;
  for (const auto& [key, value] : data) {
    if (!IsFileName(key)) return base::InvalidArgument("the key '{}' cannot be the name of a file", key);
    layout[key] = key;
  }
  return layout;
}

absl::Status WriteFiles(const fs::path& folder, const kube::Json& spec, const Data& data, mode_t allowed) {
  MEDLEY_ASSIGN_OR_RETURN(const auto layout, Layout(spec, data));
  const auto mode = static_cast<mode_t>(kube::GetInt(spec, "defaultMode", 0644)) & allowed;
  for (const auto& [key, path] : layout) {
    const fs::path file = folder / path;
    MEDLEY_RETURN_IF_ERROR(MakeFolder(file.parent_path()));
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(file, data.at(key)));
    MEDLEY_ASSIGN_OR_RETURN(const UniqueFd written, OpenFile(file, O_RDONLY));
    if (fchmod(written.get(), mode) != 0) return base::ErrnoStatus(errno, "chmod " + file.string());
  }
  return absl::OkStatus();
}

absl::Status FillFrom(DataKind kind, const fs::path& folder, const kube::Json& spec, const DataSource& source,
                      const std::vector<Mount>& mounts) {
  const bool secret = kind == DataKind::kSecret;
  const std::string name = kube::GetString(spec, secret ? "secretName" : "name");
  MEDLEY_RETURN_IF_ERROR(MakeFolder(folder));
  // Files are written before they get their own modes.
  if (secret && chmod(folder.c_str(), 0700) != 0) return base::ErrnoStatus(errno, "chmod " + folder.string());
  auto data = source(kind, name);
  if (!data.ok()) {
    const bool absent = data.status().code() == absl::StatusCode::kNotFound;
    if (absent && kube::GetBool(spec, "optional", false)) return absl::OkStatus();
    return base::Annotate(data.status(), fmt::format("{} '{}'", secret ? "secret" : "configmap", name));
  }
  if (!secret) {
    for (auto& [key, value] : *data) value = RewritePaths(value, mounts);
  }
  return WriteFiles(folder, spec, *data, secret ? kOwnerOnly : kAnyMode);
}

absl::Status CheckHostPath(const kube::Json& spec) {
  const fs::path path = kube::GetString(spec, "path");
  const std::string type = kube::GetString(spec, "type");
  std::error_code error;
  if (type == "DirectoryOrCreate") return MakeHostFolder(path);
  if (type == "Directory" && !fs::is_directory(path, error)) {
    return base::NotFound("hostPath '{}' is not a directory", path.string());
  }
  if (type == "File" && !fs::is_regular_file(path, error)) {
    return base::NotFound("hostPath '{}' is not a file", path.string());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> VolumePath(const kube::Object& pod, const kube::Json& volume,
                                       const VolumeFolders& folders) {
  const std::string name = kube::GetString(volume, "name");
  if (!IsFileName(name)) {
    return base::InvalidArgument("volume name '{}' is not valid", name);
  }
  if (volume.contains("hostPath")) return kube::GetString(volume["hostPath"], "path");
  if (volume.contains("persistentVolumeClaim")) {
    const std::string claim = kube::GetString(volume["persistentVolumeClaim"], "claimName");
    if (!IsFileName(claim)) return base::InvalidArgument("volume '{}': claim name '{}' is not valid", name, claim);
    return (folders.claims / pod.key().ns / claim).string();
  }
  return (folders.pod / "volumes" / name).string();
}

absl::Status MakeVolume(const kube::Json& volume, const fs::path& path, const DataSource& source,
                        const std::vector<Mount>& mounts) {
  if (volume.contains("hostPath")) return CheckHostPath(volume["hostPath"]);
  if (volume.contains("emptyDir") || volume.contains("persistentVolumeClaim")) return MakeFolder(path);
  if (volume.contains("configMap")) {
    return FillFrom(DataKind::kConfigMap, path, volume["configMap"], source, mounts);
  }
  if (volume.contains("secret")) return FillFrom(DataKind::kSecret, path, volume["secret"], source, mounts);
  return base::InvalidArgument(
      "its type must be one of configMap, secret, emptyDir, hostPath, "
      "persistentVolumeClaim");
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> MakeVolumes(const kube::Object& pod, const VolumeFolders& folders,
                                                               const DataSource& source) {
  std::map<std::string, std::string> paths;
  const kube::Json& volumes = kube::GetArray(pod.At("/spec"), "volumes");
  for (const kube::Json& volume : volumes) {
    MEDLEY_ASSIGN_OR_RETURN(paths[kube::GetString(volume, "name")], VolumePath(pod, volume, folders));
  }
  const std::vector<Mount> mounts = AllMounts(pod, paths);
  for (const kube::Json& volume : volumes) {
    const std::string name = kube::GetString(volume, "name");
    const absl::Status made = MakeVolume(volume, paths[name], source, mounts);
    if (!made.ok()) return base::Annotate(made, fmt::format("volume '{}'", name));
  }
  return paths;
}

absl::Status CheckVolumes(const kube::Object& pod, const kube::Json& container,
                          const std::map<std::string, std::string>& volumes) {
  for (const kube::Json& mount : kube::GetArray(container, "volumeMounts")) {
    const std::string name = kube::GetString(mount, "name");
    const auto path = volumes.find(name);
    if (path == volumes.end()) continue;  // ContainerMounts says so
    for (const kube::Json& volume : kube::GetArray(pod.At("/spec"), "volumes")) {
      if (kube::GetString(volume, "name") != name || volume.contains("hostPath")) continue;
      const auto folder = OpenFolder(path->second);
      if (!folder.ok()) return base::Annotate(folder.status(), fmt::format("volume '{}'", name));
    }
    const auto real = PathInVolume(path->second, kube::GetString(mount, "subPath"));
    if (!real.ok()) return base::Annotate(real.status(), fmt::format("volumeMount '{}'", name));
  }
  return absl::OkStatus();
}

}  // namespace medley::localcluster
