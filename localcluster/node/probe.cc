#include "localcluster/node/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {
namespace {

absl::StatusOr<int> PortOf(const kube::Json& container, const kube::Json& port) {
  if (port.is_number_integer()) return port.get<int>();
  for (const kube::Json& entry : kube::GetArray(container, "ports")) {
    if (port.is_string() && kube::GetString(entry, "name") == port.get<std::string>()) {
      return static_cast<int>(kube::GetInt(entry, "containerPort", 0));
    }
  }
  return base::InvalidArgument("readinessProbe: port {} is not one of the container's ports", port.dump());
}

// Waits until the socket is ready for `events`.
absl::Status Await(int fd, short events, base::SteadyTime deadline, base::Clock& clock) {
  for (;;) {
    const auto left = std::chrono::ceil<base::milliseconds>(deadline - clock.Steady()).count();
    if (left <= 0) return base::DeadlineExceeded("no answer in time");
    pollfd waited = {fd, events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return base::ErrnoStatus(errno, "poll");
  }
}

absl::StatusOr<UniqueFd> Connect(const std::string& host, int port, base::SteadyTime deadline, base::Clock& clock) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return base::InvalidArgument("probe host '{}' is not an IPv4 address", host);
  }
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus(errno, "socket");
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno != EINPROGRESS) return base::Unavailable("connecting to {}:{}: errno {}", host, port, errno);
    MEDLEY_RETURN_IF_ERROR(Await(fd.get(), POLLOUT, deadline, clock));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return base::Unavailable("connecting to {}:{}: errno {}", host, port, error);
  }
  return fd;
}

absl::Status AskHttp(int fd, const ProbeSpec& spec, const std::string& host, base::SteadyTime deadline,
                     base::Clock& clock) {
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: medley-probe\r\nConnection: close\r\n\r\n", spec.path,
                  host, spec.port);
  // The request fits the buffer of a new socket, so one send is enough.
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return base::Unavailable("sending the probe's request: errno {}", errno);
  }
  std::string head;  // "HTTP/1.1 200"
  while (head.size() < 12) {
    MEDLEY_RETURN_IF_ERROR(Await(fd, POLLIN, deadline, clock));
    std::array<char, 512> buffer;
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) return base::Unavailable("the connection was closed before an answer");
    head.append(buffer.data(), static_cast<size_t>(got));
  }
  const bool good = head.compare(0, 5, "HTTP/") == 0 && (head[9] == '2' || head[9] == '3');
  if (!good) return base::Unavailable("answered '{}'", head.substr(0, 12));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<ProbeSpec>> ReadinessProbe(const kube::Json& container) {
  const kube::Json& json = kube::GetValue(container, "readinessProbe");
  if (!json.is_object()) return std::optional<ProbeSpec>();
  ProbeSpec spec;
  if (json.contains("tcpSocket") || json.contains("httpGet")) {
    const bool http = json.contains("httpGet");
    const kube::Json& where = kube::GetObject(json, http ? "httpGet" : "tcpSocket");
    spec.kind = http ? ProbeSpec::Kind::kHttp : ProbeSpec::Kind::kTcp;
    MEDLEY_ASSIGN_OR_RETURN(spec.port, PortOf(container, kube::GetValue(where, "port")));
    spec.host = kube::GetString(where, "host");
    if (const std::string path = kube::GetString(where, "path"); !path.empty()) spec.path = path;
    if (const std::string scheme = kube::GetString(where, "scheme"); http && !scheme.empty() && scheme != "HTTP") {
      return base::InvalidArgument("readinessProbe: scheme '{}' is not supported, only HTTP", scheme);
    }
  } else if (json.contains("exec")) {
    spec.kind = ProbeSpec::Kind::kExec;
    for (const kube::Json& part : kube::GetArray(json["exec"], "command")) {
      if (part.is_string()) spec.command.push_back(part.get<std::string>());
    }
    if (spec.command.empty()) return base::InvalidArgument("readinessProbe: exec has no command");
  } else {
    return base::InvalidArgument("readinessProbe must be tcpSocket, httpGet or exec");
  }
  spec.initial_delay = base::seconds(kube::GetInt(json, "initialDelaySeconds", 0));
  spec.period = base::seconds(std::max<int64_t>(1, kube::GetInt(json, "periodSeconds", 10)));
  spec.timeout = base::seconds(std::max<int64_t>(1, kube::GetInt(json, "timeoutSeconds", 1)));
  spec.success_threshold = std::max(1, static_cast<int>(kube::GetInt(json, "successThreshold", 1)));
  spec.failure_threshold = std::max(1, static_cast<int>(kube::GetInt(json, "failureThreshold", 3)));
  return std::optional<ProbeSpec>(std::move(spec));
}

void ProbeTally::Count(bool good) {
  if (good) {
    run_ = std::max(run_, 0) + 1;
    if (run_ >= success_) ready_ = true;
  } else {
    run_ = std::min(run_, 0) - 1;
    if (-run_ >= failure_) ready_ = false;
  }
}

absl::Status AskProbe(const ProbeSpec& spec, const std::string& address, base::Clock& clock) {
  const std::string& host = spec.host.empty() ? address : spec.host;
  const base::SteadyTime deadline = clock.Steady() + spec.timeout;
  MEDLEY_ASSIGN_OR_RETURN(const UniqueFd fd, Connect(host, spec.port, deadline, clock));
  if (spec.kind == ProbeSpec::Kind::kTcp) return absl::OkStatus();
  return AskHttp(fd.get(), spec, host, deadline, clock);
}

}  // namespace medley::localcluster
