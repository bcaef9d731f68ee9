// The metrics that every Prometheus client library exports about its process, under their usual names, and
// medley_build_info. Reads /proc and omits what it cannot read. Thread-safe.
#pragma once

#include <string_view>

#include "common/metrics/text_page.h"

namespace medley::metrics {

// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_start_time_seconds, process_threads, process_open_fds, process_max_fds.
void WriteProcessMetrics(TextPage& page);

// medley_build_info{component, version}, always 1.
void WriteBuildInfo(TextPage& page, std::string_view component);

}  // namespace medley::metrics
