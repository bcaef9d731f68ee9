// Decodes the bytes of a watch stream into events: one JSON object per line. The transport may split lines anywhere.
// Not thread-safe; use one decoder per stream.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>

#include "kube/client.h"

namespace medley::kube {

class WatchDecoder {
 public:
  // A longer line is an error, so that a faulty server cannot use up the memory.
  explicit WatchDecoder(size_t max_line_bytes = size_t{64} << 20) : max_line_bytes_(max_line_bytes) {}

  // Calls `on_event` for each line that `bytes` completes; an unknown type is kUnknown. If `on_event` returns false, it
  // stops and stopped() becomes true. Errors: DataLoss for a line that is not a JSON object with "type" and "object",
  // ResourceExhausted for a line that is too long. Do not use the decoder after an error.
  absl::Status Feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event);

  bool stopped() const { return stopped_; }
  // True if the stream has ended inside a line, which means that it was cut.
  bool partial() const { return !buffer_.empty(); }

 private:
  absl::Status Line(std::string_view line, const std::function<bool(WatchEvent)>& on_event);

  const size_t max_line_bytes_;
  std::string buffer_;
  bool stopped_ = false;
};

}  // namespace medley::kube
