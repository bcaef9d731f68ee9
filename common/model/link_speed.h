// What a message between two units costs. Immutable values.
#pragma once

#include <string>

namespace medley::model {

// What one message costs: latency + bytes / bytes_per_second. 0 bytes per second: no limit.
struct LinkSpeed {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// Between units of two pools or types, as it was measured.
struct Link {
  std::string from;
  std::string to;
  double latency_seconds = 0;
  double bytes_per_second = 0;
  double processor_seconds_per_message = 0;  // at each end; 0: unknown
  double processor_seconds_per_byte = 0;
  double processor_seconds_per_message_in_a_row = 0;  // with no computation in between; 0: unknown (message_cost.h)
  double computed_bytes_per_message = 0;              // for processor_seconds_per_message; 0: unknown
  bool operator==(const Link&) const = default;
};

// The speed of a link that nobody has measured: processes of one machine over loopback (docs/design/collectives.md).
inline constexpr LinkSpeed kUnmeasuredLink{1e-4, 1.5e9};

}  // namespace medley::model
