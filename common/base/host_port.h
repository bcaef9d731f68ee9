// "host:port" of names, IPv4 and IPv6 addresses, the last in brackets: "[fd00::1]:7070" (RFC 3986). Pure and
// thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace medley::base {

struct HostPort {
  std::string host;  // without brackets; empty: none was given, as in ":7070"
  int port = 0;      // 0 to 65535
  bool operator==(const HostPort&) const = default;
};

// Puts an IPv6 address into brackets, if it has none yet.
std::string JoinHostPort(std::string_view host, int port);

// Errors: InvalidArgument. An IPv6 address without brackets is refused, because its end could be a port.
absl::StatusOr<HostPort> SplitHostPort(std::string_view text);

// True for "localhost" and for addresses of this machine only: 127.0.0.0/8 and ::1, without brackets.
bool IsLoopback(std::string_view host);

}  // namespace medley::base
