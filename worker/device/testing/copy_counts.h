// How much was copied between the host and a device: tests and benches compare it before and after a step.
#pragma once

#include <cstdint>

namespace medley::worker::device {

// Copies so far between the host and a device.
struct CopyCounts {
  int64_t bytes_in = 0, calls_in = 0;    // to the device
  int64_t bytes_out = 0, calls_out = 0;  // to the host

  CopyCounts operator-(const CopyCounts& other) const {
    return {bytes_in - other.bytes_in, calls_in - other.calls_in, bytes_out - other.bytes_out,
            calls_out - other.calls_out};
  }
  bool operator==(const CopyCounts&) const = default;
};

}  // namespace medley::worker::device
