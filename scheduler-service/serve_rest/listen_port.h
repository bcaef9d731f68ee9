// Finds a port for cpprestsdk, which neither reports the port that it was given nor tells its errors apart.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace medley::sched {

// Holds the address for a moment: `port` itself when it is free, or a free one when it is 0. Errors: InvalidArgument
// (not an IPv4 address and port), AlreadyExists and others by errno, naming the address.
absl::StatusOr<int> ProbePort(const std::string& host, int port);

}  // namespace medley::sched
