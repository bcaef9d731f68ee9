// An event file of a program never ends the agent, and what is read of it is a step.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "worker/agent/event_reports.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto read = medley::worker::ReadEvents(bytes);
  if (!read.ok()) return 0;
  for (const medley::worker::EventReport& event : read->reports) {
    if (event.report.step < 1 || (event.report.loss && !std::isfinite(*event.report.loss))) std::abort();
    if (!std::isfinite(event.wall_time)) std::abort();
  }
  return 0;
}
