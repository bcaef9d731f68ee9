#include "worker/data/sample_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

std::string MiB(double bytes) { return fmt::format("{:.0f} MiB", bytes / (1 << 20)); }

}  // namespace

SamplePlace PlaceIn(const fs::path& folder, bool shared, int64_t memory_limit) {
  return {.folder = folder, .shared = shared, .most_in_memory = std::min(model::kMostRowsInMemory, memory_limit / 4)};
}

std::string WhyNoPlace(const fs::path& folder, int64_t bytes) {
  std::error_code error;
  if (!fs::exists(folder, error) && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fmt::format("{} cannot be created ({})", folder.string(), std::strerror(errno));
  }
  struct statfs about = {};
  if (statfs(folder.c_str(), &about) != 0) {
    return fmt::format("{} cannot be used ({})", folder.string(), std::strerror(errno));
  }
  if (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC) {
    return fmt::format("{} is itself in memory (tmpfs)", folder.string());
  }
  if (access(folder.c_str(), W_OK) != 0) {
    return fmt::format("{} cannot be written ({})", folder.string(), std::strerror(errno));
  }
  const double room = static_cast<double>(about.f_bavail) * static_cast<double>(about.f_bsize);
  if (room >= static_cast<double>(bytes)) return "";
  return fmt::format("{} has {} of disk left and needs {}", folder.string(), MiB(room),
                     MiB(static_cast<double>(bytes)));
}

void RemoveOldSamples(const fs::path& folder, size_t most) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::directory_entry& entry = *at;
    if (!entry.path().filename().string().starts_with(kSamplesPrefix)) continue;
    std::error_code absent;
    if (const auto used = entry.last_write_time(absent); !absent) files.emplace_back(used, entry.path());
  }
  std::ranges::sort(files, std::ranges::greater());
  for (size_t i = most; i < files.size(); ++i) unlink(files[i].second.c_str());
}

void TouchSamples(const fs::path& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

}  // namespace medley::worker
