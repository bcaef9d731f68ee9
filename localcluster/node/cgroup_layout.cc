#include "localcluster/node/cgroup_layout.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace medley::localcluster {
namespace {

std::vector<std::string> Split(const std::string& text, char by) { return absl::StrSplit(text, by); }
std::vector<std::string> Lines(std::string_view text) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty());
}

// The folder of cgroup `path` if the hierarchy's subtree `root` is mounted at `point`.
std::filesystem::path FolderOf(const std::string& point, const std::string& root, const std::string& path) {
  if (root == "/") return path == "/" ? point : point + path;
  if (path.compare(0, root.size(), root) == 0) return point + path.substr(root.size());
  return point;
}

}  // namespace

CgroupLayout ParseCgroupLayout(std::string_view mountinfo, std::string_view self_cgroup) {
  std::map<std::string, std::string> paths;  // controller ("" for v2) -> cgroup
  for (const std::string& line : Lines(self_cgroup)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    for (const std::string& name : Split(line.substr(first + 1, second - first - 1), ',')) {
      paths[name] = line.substr(second + 1);
    }
  }
  CgroupLayout layout;
  const auto note = [&](std::optional<std::filesystem::path>& place, const std::string& controller,
                        const std::vector<std::string>& fields) {
    if (const auto it = paths.find(controller); it != paths.end()) {
      place = FolderOf(fields[4], fields[3], it->second);
    }
  };
  for (const std::string& line : Lines(mountinfo)) {
    const std::vector<std::string> fields = Split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 10 || fields.end() - dash < 4) continue;
    if (dash[1] == "cgroup2") note(layout.unified, "", fields);
    if (dash[1] != "cgroup") continue;
    for (const std::string& option : Split(dash[3], ',')) {
      if (option == "cpu") note(layout.cpu, "cpu", fields);
      if (option == "memory") note(layout.memory, "memory", fields);
    }
  }
  return layout;
}

}  // namespace medley::localcluster
