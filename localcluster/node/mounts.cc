#include "localcluster/node/mounts.h"

#include <filesystem>

#include "common/base/status.h"
#include "kube/json_access.h"

namespace medley::localcluster {
namespace {

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// True if a path may begin at `at`.
bool BeginsPath(std::string_view text, size_t at) {
  if (at == 0) return true;
  if (at >= 3 && text.substr(at - 3, 3) == "://") return true;
  return text[at - 1] != '/' && !IsNameChar(text[at - 1]);
}

const Mount* MountAt(std::string_view text, size_t at, const std::vector<Mount>& mounts) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    const std::string& path = mount.mount_path;
    if (text.compare(at, path.size(), path) != 0) continue;
    const size_t end = at + path.size();
    if (end < text.size() && IsNameChar(text[end])) continue;
    if (best == nullptr || path.size() > best->mount_path.size()) best = &mount;
  }
  return best;
}

}  // namespace

std::string RewritePaths(std::string_view text, const std::vector<Mount>& mounts) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Mount* mount = text[i] == '/' && BeginsPath(text, i) ? MountAt(text, i, mounts) : nullptr;
    if (mount == nullptr) {
      out += text[i++];
      continue;
    }
    out += mount->real_path;
    i += mount->mount_path.size();
  }
  return out;
}

absl::StatusOr<std::vector<Mount>> ContainerMounts(const kube::Json& container,
                                                   const std::map<std::string, std::string>& volumes) {
  std::vector<Mount> mounts;
  for (const kube::Json& entry : kube::GetArray(container, "volumeMounts")) {
    Mount mount{kube::GetString(entry, "name"), kube::GetString(entry, "mountPath"), ""};
    const auto volume = volumes.find(mount.volume);
    if (volume == volumes.end()) {
      return base::InvalidArgument("volumeMount '{}' does not name a volume of the pod", mount.volume);
    }
    while (mount.mount_path.size() > 1 && mount.mount_path.back() == '/') mount.mount_path.pop_back();
    if (mount.mount_path.size() < 2 || mount.mount_path[0] != '/') {
      return base::InvalidArgument("mountPath '{}' of volume '{}' must be absolute and not the root", mount.mount_path,
                                   mount.volume);
    }
    std::filesystem::path real = volume->second;
    if (const std::string sub = kube::GetString(entry, "subPath"); !sub.empty()) {
      const std::filesystem::path normal = std::filesystem::path(sub).lexically_normal();
      if (normal.is_absolute() || normal.begin()->string() == "..") {
        return base::InvalidArgument("subPath '{}' of volume '{}' is not inside the volume", sub, mount.volume);
      }
      real /= normal;
    }
    mount.real_path = real.string();
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::string MountVariable(std::string_view volume) {
  std::string name = "MEDLEY_MOUNT_";
  for (const char c : volume) {
    if (c >= 'a' && c <= 'z') {
      name += static_cast<char>(c - 'a' + 'A');
    } else {
      name += (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
    }
  }
  return name;
}

}  // namespace medley::localcluster
