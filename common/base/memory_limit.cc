#include "common/base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace medley::base {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Without a file, or with "max" in it: no limit.
int64_t LimitIn(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string text;
  stream >> text;
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() && bytes > 0 ? bytes : kNone;
}

int64_t ControlGroupLimit(const std::filesystem::path& root) {
  int64_t limit = kNone;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "5:memory:/a/b"
    std::istringstream fields(line);
    std::string number;
    std::string controllers;
    std::string path;
    std::getline(fields, number, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    const bool unified = number == "0" && controllers.empty();
    if (!unified && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::filesystem::path mount = root / (unified ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    const char* name = unified ? "memory.max" : "memory.limit_in_bytes";
    std::filesystem::path group = std::filesystem::path(path).relative_path();
    while (true) {  // a container may see its own group as the root
      limit = std::min(limit, LimitIn(mount / group / name));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return limit;
}

}  // namespace

int64_t MemoryLimit(const std::filesystem::path& root) {
  int64_t limit = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    limit = std::min(limit, static_cast<int64_t>(space.rlim_cur));
  }
  if (const char* text = std::getenv("MEDLEY_MEMORY_LIMIT"); text != nullptr) {
    int64_t bytes = 0;
    const char* end = text + std::strlen(text);
    const auto [at, error] = std::from_chars(text, end, bytes);
    if (error == std::errc() && at == end && bytes > 0) limit = std::min(limit, bytes);
  }
  return std::min(limit, ControlGroupLimit(root));
}

int64_t MemoryInUse(const std::filesystem::path& root) {
  std::ifstream pages(root / "proc/self/statm");
  int64_t size = 0, resident = 0, of_files = 0;
  if (!(pages >> size >> resident >> of_files)) return 0;
  return std::max<int64_t>(0, resident - of_files) * sysconf(_SC_PAGESIZE);
}

}  // namespace medley::base
