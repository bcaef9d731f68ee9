#include "worker/app/unit_cpus.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "common/base/file.h"

namespace medley::worker {
namespace {

std::optional<int> PositiveNumber(const std::optional<std::string>& text) {
  int number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc()) return {};
  return number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<CpuQuota> Smaller(std::optional<CpuQuota> a, std::optional<CpuQuota> b) {
  if (!a || !b) return a ? a : b;
  return b->cores < a->cores ? b : a;
}

// v1 has the two numbers of cpu.max in two files; a quota of -1 means no limit.
std::optional<CpuQuota> QuotaV1(const std::filesystem::path& folder) {
  const auto quota = base::ReadFile(folder / "cpu.cfs_quota_us"), period = base::ReadFile(folder / "cpu.cfs_period_us");
  if (!quota.ok() || !period.ok()) return std::nullopt;
  return ParseCpuMax(*quota + " " + *period);
}

std::optional<CpuQuota> QuotaV2(const std::filesystem::path& folder) {
  const auto text = base::ReadFile(folder / "cpu.max");
  return text.ok() ? ParseCpuMax(*text) : std::nullopt;
}

// Applies `read` to `mount` and to each folder on the way to `path` below it.
std::optional<CpuQuota> AlongPath(const std::filesystem::path& mount, const std::string& path,
                                  std::optional<CpuQuota> (*read)(const std::filesystem::path&)) {
  std::filesystem::path folder = mount;
  std::optional<CpuQuota> least = read(folder);
  for (const auto& part : std::filesystem::path(path).relative_path()) {
    folder /= part;
    least = Smaller(least, read(folder));
  }
  return least;
}

bool ListsCpu(std::string_view controllers) {  // "cpu,cpuacct"
  return ("," + std::string(controllers) + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<CpuQuota> ParseCpuMax(std::string_view text) {
  constexpr double kPerSecond = 1e6;  // microseconds
  std::istringstream stream{std::string(text)};
  double quota = 0, period = 0;
  if (!(stream >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return CpuQuota{quota / period, period / kPerSecond};
}

std::optional<CpuQuota> CgroupQuota(const std::filesystem::path& root) {
  const auto groups = base::ReadFile(root / "proc/self/cgroup");  // lines "hierarchy:controllers:path"
  if (!groups.ok()) return std::nullopt;
  std::istringstream lines(*groups);
  std::optional<CpuQuota> least;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    const std::filesystem::path mount = root / "sys/fs/cgroup";
    if (controllers.empty()) least = Smaller(least, AlongPath(mount, path, QuotaV2));
    if (!ListsCpu(controllers)) continue;
    for (const char* folder : {"cpu", "cpu,cpuacct"}) least = Smaller(least, AlongPath(mount / folder, path, QuotaV1));
  }
  return least;
}

int ThreadsFor(const CpuFacts& facts) {
  constexpr int kMost = 1024;
  const int quota = facts.quota ? static_cast<int>(std::clamp(*facts.quota, 1.0, double{kMost})) : kMost;
  const int wanted = facts.wanted.value_or(facts.quota ? quota : 1);
  return std::max(1, std::min({wanted, quota, facts.allowed}));
}

int UnitThreads(const GetVariable& get) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
  const std::optional<CpuQuota> quota = CgroupQuota("/");
  return ThreadsFor({.wanted = PositiveNumber(get("OMP_NUM_THREADS")),
                     .quota = quota ? std::optional(quota->cores) : std::nullopt,
                     .allowed = known ? CPU_COUNT(&set) : 1});
}

}  // namespace medley::worker
