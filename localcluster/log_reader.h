// The interface through which an API server reads the logs of containers.
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

namespace medley::localcluster {

struct LogOptions {
  std::string container;                // empty: the pod's only container
  bool follow = false;                  // continue until the container ends, the sink returns false, or `stop`
  bool previous = false;                // the log of the container's previous start
  std::optional<int64_t> tail_lines;    // only the last n lines of the current log
  std::optional<int64_t> limit_bytes;   // limit on the bytes that the sink gets
  std::optional<base::WallTime> since;  // only lines written at or after it; applied after tail_lines
  bool timestamps = false;              // begin each line with its time, RFC 3339 with nanoseconds
};

class LogReader {
 public:
  virtual ~LogReader() = default;
  // Calls `sink` with pieces of the log, in order, on the calling thread, until it returns false. Errors: NotFound (the
  // pod does not run here), InvalidArgument (the container is not named or unknown, or has no previous start).
  virtual absl::Status ReadLog(const kube::Key& pod, const LogOptions& options, std::stop_token stop,
                               const std::function<bool(std::string_view)>& sink) = 0;
};

}  // namespace medley::localcluster
