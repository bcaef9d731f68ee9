// The addresses that a program listens on. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace medley::sched {

struct Address {
  std::string host;  // empty: all interfaces
  int port = 0;      // 0: the system chooses
  bool loopback() const;
};

// Parses "HOST:PORT", or "[ADDRESS]:PORT" for IPv6; ":PORT" means all interfaces. Errors: InvalidArgument naming
// `flag`.
absl::StatusOr<Address> ParseAddress(const std::string& text, std::string_view flag);

// Refuses an address that other machines can reach, unless `protected_by_tls_and_token`. Errors: FailedPrecondition
// naming `flag`.
absl::Status CheckExposure(const Address& address, std::string_view flag, bool protected_by_tls_and_token);

}  // namespace medley::sched
