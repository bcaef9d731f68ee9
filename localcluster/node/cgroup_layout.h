// Finds the cgroups of this process from /proc/self/mountinfo and /proc/self/cgroup. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace medley::localcluster {

struct CgroupLayout {
  // Folders of this process's cgroups. `unified` is set only if that cgroup has both controllers.
  std::optional<std::filesystem::path> unified;
  std::optional<std::filesystem::path> cpu;     // v1
  std::optional<std::filesystem::path> memory;  // v1
};

CgroupLayout ParseCgroupLayout(std::string_view mountinfo, std::string_view self_cgroup);

}  // namespace medley::localcluster
