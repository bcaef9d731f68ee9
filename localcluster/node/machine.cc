#include "localcluster/node/machine.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "localcluster/node/gpu_pool.h"

namespace medley::localcluster {
namespace {

int Cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));  // more CPUs than the set has bits
}

// The driver makes one device file for each GPU: nvidia0, nvidia1 and so on. Others, such as nvidiactl, are no GPUs.
bool IsGpu(std::string_view file) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!file.starts_with(kPrefix) || file.size() == kPrefix.size()) return false;
  return file.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

}  // namespace

std::string Machine::ToString() const {
  const double gib = static_cast<double>(memory_bytes) / (1 << 30);
  const size_t count = gpus.size();
  const std::string devices = count == 0 ? "no GPU" : fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
  return fmt::format("{} CPU{}, {:.1f} GiB of memory and {}", cpus, cpus == 1 ? "" : "s", gib, devices);
}

Machine ThisMachine(const std::filesystem::path& devices, const char* visible) {
  Machine machine;
  machine.cpus = Cpus();
  machine.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  int files = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(devices, error), end; !error && it != end; it.increment(error)) {
    files += IsGpu(it->path().filename().string());
  }
  machine.gpus = UsableGpus(files, visible);
  return machine;
}

}  // namespace medley::localcluster
