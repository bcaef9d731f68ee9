// What a program posts or prints about its progress never ends the agent, and what is read of it is a step.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/model/progress_pattern.h"
#include "worker/agent/log_lines.h"
#include "worker/agent/progress_port.h"

namespace {

void Check(const medley::model::StepReport& report) {
  if (report.step < 1 || (report.loss && !std::isfinite(*report.loss))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto pattern =
      medley::model::ProgressPattern::Make(R"((?P<step>[-+\d]+)\s*(loss (?P<loss>\S+))?)").value();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto report = medley::worker::ReadReport(bytes); report.ok()) Check(*report);
  size_t most = 0;
  medley::worker::LogLines lines(
      [&](std::string_view line) {
        if (const auto report = pattern.Read(line)) Check(*report);
      },
      [&](std::string_view line) { most = std::max(most, line.size()); });
  lines.Add(bytes, {});
  lines.End({});
  // Each byte of a line may be escaped as four.
  if (most > 4 * medley::worker::LogLines::kMostBytes + 64) std::abort();
  return 0;
}
