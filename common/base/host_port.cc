#include "common/base/host_port.h"

#include <arpa/inet.h>

#include <charconv>

#include "common/base/status.h"

namespace medley::base {
namespace {

constexpr int kLargestPort = 65535;

// -1: not a port.
int PortOf(std::string_view digits) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && digits.front() != '-' && port <= kLargestPort ? port : -1;
}

}  // namespace

std::string JoinHostPort(std::string_view host, int port) {
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && host.front() != '[';
  return bare_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

absl::StatusOr<HostPort> SplitHostPort(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const size_t end = bracketed ? text.find(']') : text.find(':');
  const size_t colon = bracketed && end != std::string_view::npos ? end + 1 : end;
  if (colon >= text.size() || text[colon] != ':') {
    return InvalidArgument("'{}' must have the form HOST:PORT, or [ADDRESS]:PORT for IPv6", text);
  }
  HostPort out;
  out.host = bracketed ? text.substr(1, end - 1) : text.substr(0, colon);
  if (bracketed && out.host.find(':') == std::string::npos) {
    return InvalidArgument("'{}': only an IPv6 address stands in brackets", text);
  }
  const std::string_view digits = text.substr(colon + 1);
  if (digits.find(':') != std::string_view::npos) {
    return InvalidArgument("'{}': an IPv6 address needs brackets, as in [::1]:7070", text);
  }
  out.port = digits.empty() ? -1 : PortOf(digits);
  if (out.port < 0) return InvalidArgument("'{}': '{}' is not a port from 0 to {}", text, digits, kLargestPort);
  return out;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  // Not only a name that begins so, such as 127.0.0.1.example.com.
  in_addr address{};
  return host.starts_with("127.") && inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

}  // namespace medley::base
