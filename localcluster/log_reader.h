// Logs of containers, for the log subresource of an API server.
//
// Thread-safe. The process node implements it; an API server that serves pods/log borrows it.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::kube {

struct LogOptions {
  std::string container;                // empty: the pod's only container
  bool follow = false;                  // go on until the container ends, the sink says stop, or `stop`
  bool previous = false;                // the log of the start before this one
  std::optional<int64_t> tail_lines;    // only the last n lines of what is there
  std::optional<int64_t> limit_bytes;   // of what the sink gets
  std::optional<base::WallTime> since;  // only lines written at or after it; of the tail, where both are given
  bool timestamps = false;              // each line begins with when it was written, RFC 3339 with nanoseconds
};

class LogReader {
 public:
  virtual ~LogReader() = default;
  // Calls `sink` with pieces of the log, in order, from the calling thread; false from it ends the read.
  // Errors: NotFound (no such pod here), InvalidArgument (which container?, no previous start).
  virtual absl::Status ReadLog(const Key& pod, const LogOptions& options, std::stop_token stop,
                               const std::function<bool(std::string_view)>& sink) = 0;
};

}  // namespace medley::kube
