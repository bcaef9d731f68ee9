// Finds a port for cpprestsdk, which neither reports the port that the system chose nor distinguishes its errors.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace medley::sched {

// Binds the address for a moment and returns the port: `port` itself if it is free, or a free one if `port` is 0.
// `host`: an IPv4 address, or the name of a host, which may have an IPv6 address; the library takes no IPv6 address.
// Errors: InvalidArgument (such an address, an unknown name, no port), AlreadyExists and others by errno, naming the
// address.
absl::StatusOr<int> ProbePort(const std::string& host, int port);

}  // namespace medley::sched
