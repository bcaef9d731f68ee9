// Bytes of a watch stream to events: one JSON object a line, lines cut anywhere by the transport.
// Not thread-safe; one a stream.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>

#include "kube/client.h"

namespace medley::kube {

class WatchDecoder {
 public:
  // A line longer than this is an error, so that a mad server cannot take all memory.
  explicit WatchDecoder(size_t max_line_bytes = size_t{64} << 20) : max_line_bytes_(max_line_bytes) {}

  // Calls `on_event` for each line that `bytes` completes. A type that is not known gives kUnknown.
  // Errors: DataLoss for a line that is no JSON object with "type" and "object", ResourceExhausted for one
  // that is too long; the decoder is of no more use then. `stopped` becomes true when `on_event` said false.
  absl::Status Feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event);

  bool stopped() const { return stopped_; }
  // True when the stream ended inside of a line: it was cut.
  bool partial() const { return !buffer_.empty(); }

 private:
  absl::Status Line(std::string_view line, const std::function<bool(WatchEvent)>& on_event);

  const size_t max_line_bytes_;
  std::string buffer_;
  bool stopped_ = false;
};

}  // namespace medley::kube
