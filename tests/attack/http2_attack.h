// Sends HTTP/2 frames to a gRPC server that no gRPC client would send, as someone who knows only its address can.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"

typedef struct ssl_ctx_st SSL_CTX;

namespace medley::attack {

struct FloodOptions {
  std::string address;  // "host:port"
  std::string attack;   // one of AttackNames
  int connections = 1;
  base::nanoseconds time = base::seconds(1);
  SSL_CTX* tls = nullptr;  // borrowed; null: plain text
};

struct Sent {
  int64_t connections = 0;  // that the server accepted
  int64_t ended = 0;        // that the server closed
  int64_t frames = 0;
  int64_t bytes = 0;
};

std::vector<std::string> AttackNames();

// Repeats the frames of an attack on so many connections for a time, and opens a connection again when the server ends
// it. Ignores SIGPIPE from then on. Errors: InvalidArgument, NotFound.
absl::StatusOr<Sent> Flood(const FloodOptions& options);

}  // namespace medley::attack
