#include "cli/run/worker_devices.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "cli/run/child_process.h"
#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

constexpr base::seconds kPatience{30};  // LibTorch for GPUs has GB of libraries to load

}  // namespace

absl::StatusOr<bool> WorkerUsesGpus(base::Clock& clock, const std::filesystem::path& program,
                                    const std::filesystem::path& folder) {
  const auto answer = folder / "worker-devices.log";
  std::error_code absent;
  std::filesystem::remove(answer, absent);  // of an earlier run in this folder: logs are appended to
  MEDLEY_ASSIGN_OR_RETURN(const auto child,
                          ChildProcess::Start({.program = program, .arguments = {"--devices"}, .log = answer}));
  const base::SteadyTime deadline = clock.Steady() + kPatience;
  std::optional<std::string> ended;
  while (!(ended = child->Ended())) {
    if (clock.Steady() > deadline) return base::DeadlineExceeded("{} --devices did not end", program.string());
    clock.SleepFor(base::milliseconds(5), {});
  }
  std::string text = base::ReadFile(answer).value_or("");
  absl::StripAsciiWhitespace(&text);
  if (*ended != "exit code 0") {
    return base::Unavailable("{} --devices: {}: {}", program.string(), *ended, text);
  }
  const std::vector<std::string> devices = absl::StrSplit(text, '\n');
  return std::ranges::find(devices, "cuda") != devices.end();
}

}  // namespace medley::cli
