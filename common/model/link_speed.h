// What a message between two units costs. Immutable value.
#pragma once

namespace medley::model {

// What one message costs: latency + bytes / bytes_per_second. 0 bytes per second: no limit.
struct LinkSpeed {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

// The speed of a link that nobody has measured: processes of one machine over loopback (docs/design/collectives.md).
inline constexpr LinkSpeed kUnmeasuredLink{1e-4, 1.5e9};

}  // namespace medley::model
