// CPU time and memory of other processes, from the kernel's counters.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

namespace medley::bench {

struct Usage {
  double cpu_seconds = 0;
  double rss_mib = 0;
};

// Errors: NotFound (no such process).
absl::StatusOr<Usage> UsageOf(int pid);

// CPU seconds since construction, by name.
class UsageSince {
 public:
  explicit UsageSince(std::map<std::string, int> pids);
  std::map<std::string, double> cpu_seconds() const;

 private:
  const std::map<std::string, int> pids_;
  std::map<std::string, double> begin_;
};

}  // namespace medley::bench
