#include "tests/bench/cluster/usage.h"

#include <unistd.h>

#include <sstream>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::bench {

absl::StatusOr<Usage> UsageOf(int pid) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile("/proc/" + std::to_string(pid) + "/stat"));
  // The fields after the name in parentheses. In proc(5), state is field 3, utime 14, stime 15, rss 24.
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  Usage out;
  for (int i = 3; i <= 24 && fields >> field; ++i) {
    if (i == 14 || i == 15) out.cpu_seconds += std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
    if (i == 24) out.rss_mib = std::stod(field) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  }
  return out;
}

UsageSince::UsageSince(std::map<std::string, int> pids) : pids_(std::move(pids)), begin_() {
  for (const auto& [name, pid] : pids_) begin_[name] = UsageOf(pid).value_or(Usage()).cpu_seconds;
}

std::map<std::string, double> UsageSince::cpu_seconds() const {
  std::map<std::string, double> out;
  for (const auto& [name, pid] : pids_) out[name] = UsageOf(pid).value_or(Usage()).cpu_seconds - begin_.at(name);
  return out;
}

}  // namespace medley::bench
