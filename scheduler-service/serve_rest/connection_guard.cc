#include "scheduler-service/serve_rest/connection_guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/log.h"

namespace medley::sched {
namespace {

// Duplicates a descriptor, so that it cannot be closed and reused for something else while we use it.
class Duplicate {
 public:
  explicit Duplicate(int fd) : fd_(fcntl(fd, F_DUPFD_CLOEXEC, 0)) {}
  ~Duplicate() {
    if (fd_ >= 0) close(fd_);
  }
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

bool IsConnectionOf(int fd, int port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const bool ours = (address.ss_family == AF_INET && ntohs(v4.sin_port) == port) ||
                    (address.ss_family == AF_INET6 && ntohs(v6.sin6_port) == port);
  if (!ours) return false;
  int listening = 0;
  size = sizeof listening;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening == 0;
}

std::vector<int> OpenDescriptors() {
  std::vector<int> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (folder == nullptr) return out;
  while (const dirent* entry = readdir(folder.get())) {
    const int fd = std::atoi(entry->d_name);
    if (fd > 2 && fd != dirfd(folder.get())) out.push_back(fd);
  }
  return out;
}

bool IsSocket(int fd) {
  struct stat file {};
  return fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode);
}

}  // namespace

ConnectionGuard::ConnectionGuard(const Options& options, std::function<int()> answering, metrics::Registry& metrics,
                                 base::Clock& clock)
    : options_(options),
      answering_(std::move(answering)),
      metrics_(metrics),
      open_(metrics.GetGauge("medley_rest_connections", "Open connections to the REST port")),
      clock_(clock),
      thread_([this](std::stop_token stop) {
        while (clock_.SleepFor(options_.period, stop)) InspectAll();
      }) {}

int ConnectionGuard::InspectAll() {
  ended_ = 0;
  const base::SteadyTime now = clock_.Steady();
  for (auto& [inode, connection] : connections_) connection.seen = false;
  for (const int fd : OpenDescriptors()) {
    if (!IsSocket(fd)) continue;
    const Duplicate duplicate(fd);
    if (duplicate.get() >= 0 && IsConnectionOf(duplicate.get(), options_.port)) Inspect(duplicate.get(), now);
  }
  std::erase_if(connections_, [](const auto& item) { return !item.second.seen; });
  open_.Set(static_cast<double>(connections_.size()));
  if (connections_.size() > options_.max_connections) EndOldestIdle();
  return ended_;
}

void ConnectionGuard::Inspect(int fd, base::SteadyTime now) {
  struct stat file {};
  tcp_info info{};
  socklen_t size = sizeof info;
  if (fstat(fd, &file) != 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  const auto [found, is_new] = connections_.try_emplace(file.st_ino);
  Connection& connection = found->second;
  if (connection.seen) return;  // another descriptor of the same socket
  const bool received_more = info.tcpi_bytes_received > connection.received;
  const bool sent_more = info.tcpi_bytes_sent > connection.sent;
  connection.seen = true;
  connection.received = info.tcpi_bytes_received;
  connection.sent = info.tcpi_bytes_sent;
  if (is_new || received_more || sent_more) connection.changed = now;
  if (sent_more) {
    connection.received_at_sent = connection.received;
    connection.asking = false;
  } else if (received_more && !connection.asking) {
    connection.asking = true;
    connection.asking_since = now;
  }
  if (const char* fault = Fault(connection, received_more, now)) End(fd, fault);
}

const char* ConnectionGuard::Fault(const Connection& connection, bool grew, base::SteadyTime now) const {
  if (now - connection.changed > options_.idle) return "idle";
  if (connection.received - connection.received_at_sent > options_.max_unanswered_bytes) return "size";
  // The client is still sending after that time, or it has sent an incomplete request and waits.
  const bool slow = connection.asking && now - connection.asking_since > options_.receive;
  if (slow && (grew || answering_() == 0)) return "slow";
  return nullptr;
}

void ConnectionGuard::End(int fd, const char* reason) {
  // Reset the connection when it is closed. Otherwise a client that is still sending would notice nothing until its
  // kernel gives up.
  constexpr linger kReset{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &kReset, sizeof kReset);
  shutdown(fd, SHUT_RDWR);
  ++ended_;
  metrics_
      .GetCounter("medley_rest_connections_ended_total", "Connections that the service closed, by reason",
                  {{"reason", reason}})
      .Increment();
  log::Info("closed a connection", {{"reason", reason}});
}

void ConnectionGuard::EndOldestIdle() {
  // Order by the time of the last activity, and skip connections that wait for a response.
  std::vector<std::pair<base::SteadyTime, ino_t>> quiet;
  for (const auto& [inode, connection] : connections_) {
    if (!connection.asking || answering_() == 0) quiet.emplace_back(connection.changed, inode);
  }
  std::sort(quiet.begin(), quiet.end());
  quiet.resize(std::min(quiet.size(), connections_.size() - options_.max_connections));
  for (const int fd : OpenDescriptors()) {
    if (!IsSocket(fd)) continue;
    const Duplicate duplicate(fd);
    struct stat file {};
    if (duplicate.get() < 0 || fstat(duplicate.get(), &file) != 0) continue;
    const bool chosen = std::any_of(quiet.begin(), quiet.end(), [&](const auto& q) { return q.second == file.st_ino; });
    if (chosen && IsConnectionOf(duplicate.get(), options_.port)) End(duplicate.get(), "too many");
  }
}

}  // namespace medley::sched
