// Messages between `medley predict` and the process that computes a model from PyTorch, over a pair of sockets.
//
//   frame:    int32 code (of absl::Status), uint32 bytes, then so many bytes
//   hello:    of the process, first: code 0 and 3 int32: fields, numerics, outputs of a sample
//   request:  code: the number of samples; ids (int32, samples x fields), then numerics (float32, samples x numerics)
//   answer:   code 0 and the logits (float32, samples x outputs); or the code and the sentence of an error
//
// Both run on one machine, so numbers have its byte order. Stateless and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::worker {

inline constexpr uint32_t kMostFrameBytes = uint32_t{1} << 30;

struct Frame {
  int32_t code = 0;
  std::string bytes;
};

// Blocks for as long as the socket's timeouts say. A peer that has ended is an error and no signal. Errors: Unavailable
// (it has ended), DeadlineExceeded, ResourceExhausted for a frame that is too large.
absl::Status WriteFrame(int socket, int32_t code, std::string_view bytes);
absl::StatusOr<Frame> ReadFrame(int socket);

}  // namespace medley::worker
