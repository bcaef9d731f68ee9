#include "worker/profiler/loopback_probe.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/params/optimizer.h"
#include "worker/profiler/statistics.h"

namespace medley::worker {
namespace {

constexpr int kRepeats = 5;

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  int fd() const { return fd_; }
  void Shutdown() const { shutdown(fd_, SHUT_RDWR); }

  absl::Status Write(const void* data, size_t size) const {
    for (const char* at = static_cast<const char*>(data); size > 0;) {
      const ssize_t sent = send(fd_, at, size, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return base::ErrnoStatus(errno, "send on loopback");
      at += sent;
      size -= static_cast<size_t>(sent);
    }
    return absl::OkStatus();
  }
  absl::Status Read(void* data, size_t size) const {
    for (char* at = static_cast<char*>(data); size > 0;) {
      const ssize_t got = recv(fd_, at, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::ErrnoStatus(errno, "receive on loopback");
      if (got == 0) return base::Unavailable("the loopback peer has closed");
      at += got;
      size -= static_cast<size_t>(got);
    }
    return absl::OkStatus();
  }

 private:
  int fd_;
};

struct Connection {
  Socket client;
  Socket server;
};

absl::StatusOr<Connection> Connect() {
  const Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  sockaddr* const raw = reinterpret_cast<sockaddr*>(&address);
  if (listener.fd() < 0 || bind(listener.fd(), raw, length) != 0 || listen(listener.fd(), 1) != 0 ||
      getsockname(listener.fd(), raw, &length) != 0) {
    return base::ErrnoStatus(errno, "listen on loopback");
  }
  Socket client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.fd() < 0 || connect(client.fd(), raw, length) != 0)
    return base::ErrnoStatus(errno, "connect to loopback");
  Socket server(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (server.fd() < 0) return base::ErrnoStatus(errno, "accept on loopback");
  const int on = 1;
  for (const int fd : {client.fd(), server.fd()})
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return Connection{std::move(client), std::move(server)};
}

// What the peer shall do: read `request` bytes, work, write `reply` bytes, then 8 bytes: its
// processor seconds.
struct Order {
  uint64_t request = 0;
  uint64_t reply = 0;
  uint32_t push_rows = 0;  // > 0: the request ends in that many gradient rows
  uint32_t pull_rows = 0;  // > 0: the reply is that many rows
  uint32_t columns = 0;
  uint32_t unused = 0;
};

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The peer: a server with a table that does not fit the caches.
class Peer {
 public:
  explicit Peer(Socket socket)
      : socket_(std::move(socket)), weights_(kTableFloats), state_(kTableFloats, 0.1F) {}
  void Run() {
    while (Serve().ok()) {
    }
  }
  void Shutdown() const { socket_.Shutdown(); }

 private:
  static constexpr size_t kTableFloats = size_t{1} << 22;

  absl::Status Serve() {
    Order order;
    MEDLEY_RETURN_IF_ERROR(socket_.Read(&order, sizeof(order)));
    const double start = ThreadSeconds();
    buffer_.resize(std::max(order.request, order.reply) / sizeof(float) + 2);
    MEDLEY_RETURN_IF_ERROR(socket_.Read(buffer_.data(), order.request));
    const size_t columns = order.columns;
    for (uint32_t i = 0; i < order.push_rows; ++i) {
      const size_t at = RowAt(i, columns);
      Apply(optimizer_, std::span(weights_).subspan(at, columns),
            std::span(state_).subspan(at, columns),
            std::span(buffer_).subspan(i * columns, columns));
    }
    for (uint32_t i = 0; i < order.pull_rows; ++i) {
      std::copy_n(weights_.data() + RowAt(i, columns), columns, buffer_.data() + i * columns);
    }
    MEDLEY_RETURN_IF_ERROR(socket_.Write(buffer_.data(), order.reply));
    const double seconds = ThreadSeconds() - start;
    return socket_.Write(&seconds, sizeof(seconds));
  }
  static size_t RowAt(uint32_t row, size_t columns) {
    return base::Mix64(row) % (kTableFloats - columns);
  }

  const Socket socket_;
  const Optimizer optimizer_;
  std::vector<float> buffer_;
  std::vector<float> weights_;
  std::vector<float> state_;
};

}  // namespace

class LoopbackProbe::Rep {
 public:
  Rep(Connection connection, const base::Clock& clock)
      : clock_(clock),
        socket_(std::move(connection.client)),
        peer_(std::move(connection.server)),
        thread_([this] { peer_.Run(); }) {}
  ~Rep() {
    socket_.Shutdown();
    peer_.Shutdown();
  }

  // One order; returns the peer's processor seconds.
  absl::StatusOr<double> Ask(const Order& order) {
    buffer_.resize(std::max(order.request, order.reply) / sizeof(float) + 2);
    MEDLEY_RETURN_IF_ERROR(socket_.Write(&order, sizeof(order)));
    MEDLEY_RETURN_IF_ERROR(socket_.Write(buffer_.data(), order.request));
    MEDLEY_RETURN_IF_ERROR(socket_.Read(buffer_.data(), order.reply));
    double seconds = 0;
    MEDLEY_RETURN_IF_ERROR(socket_.Read(&seconds, sizeof(seconds)));
    return seconds;
  }

  // Median seconds of `work`, after one run to warm up; `work` returns its part of another cost,
  // whose median goes to `other`.
  absl::StatusOr<double> Measure(const std::function<absl::StatusOr<double>()>& work,
                                 double* other = nullptr) {
    std::vector<double> seconds;
    std::vector<double> others;
    for (int i = 0; i <= kRepeats; ++i) {
      const base::SteadyTime start = clock_.Steady();
      MEDLEY_ASSIGN_OR_RETURN(const double part, work());
      if (i == 0) continue;
      seconds.push_back(base::ToSeconds(clock_.Steady() - start));
      others.push_back(part);
    }
    if (other != nullptr) *other = Median(others);
    return Median(seconds);
  }

 private:
  const base::Clock& clock_;
  const Socket socket_;
  Peer peer_;
  std::vector<float> buffer_;
  std::jthread thread_;
};

LoopbackProbe::LoopbackProbe(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
LoopbackProbe::~LoopbackProbe() = default;

absl::StatusOr<std::unique_ptr<LoopbackProbe>> LoopbackProbe::Create(const base::Clock& clock) {
  MEDLEY_ASSIGN_OR_RETURN(Connection connection, Connect());
  return std::unique_ptr<LoopbackProbe>(
      new LoopbackProbe(std::make_unique<Rep>(std::move(connection), clock)));
}

absl::StatusOr<double> LoopbackProbe::ExchangeSeconds(int64_t bytes) {
  const uint64_t size = static_cast<uint64_t>(bytes);
  return rep_->Measure([&] { return rep_->Ask({size, size}); });
}

// A ring: 2 (n - 1) rounds, each with one n-th of the data there and back; half of them add.
absl::StatusOr<double> LoopbackProbe::AllreduceSeconds(int64_t bytes, int replicas) {
  if (replicas <= 1 || bytes <= 0) return 0;
  const uint64_t piece = static_cast<uint64_t>(bytes) / static_cast<uint64_t>(replicas);
  std::vector<float> sum(piece / sizeof(float));
  const std::vector<float> part(sum.size(), 1);
  return rep_->Measure([&]() -> absl::StatusOr<double> {
    for (int round = 0; round < 2 * (replicas - 1); ++round) {
      MEDLEY_RETURN_IF_ERROR(rep_->Ask({piece, piece}).status());
      for (size_t i = 0; round % 2 == 0 && i < sum.size(); ++i) sum[i] += part[i];
    }
    return 0.0;
  });
}

absl::StatusOr<LoopbackProbe::ServerCost> LoopbackProbe::PullPushCost(int64_t rows, int columns) {
  const uint64_t keys = static_cast<uint64_t>(rows) * sizeof(uint64_t);
  const uint64_t values =
      static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * sizeof(float);
  const uint32_t count = static_cast<uint32_t>(rows);
  const uint32_t width = static_cast<uint32_t>(columns);
  ServerCost cost;
  MEDLEY_ASSIGN_OR_RETURN(
      cost.client_seconds,
      rep_->Measure(
          [&]() -> absl::StatusOr<double> {
            MEDLEY_ASSIGN_OR_RETURN(const double pull, rep_->Ask({keys, values, 0, count, width}));
            MEDLEY_ASSIGN_OR_RETURN(const double push,
                                    rep_->Ask({keys + values, 0, count, 0, width}));
            return pull + push;
          },
          &cost.server_seconds));
  return cost;
}

}  // namespace medley::worker
