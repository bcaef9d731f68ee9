#include "common/http2_front/connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace medley::http2_front {
namespace {

constexpr size_t kMostAtOnce = 256 << 10;
constexpr size_t kLittleAtOnce = 16 << 10;
constexpr int64_t kMuchHeld = int64_t{16} << 20;  // by all connections: from then on they read little at once
constexpr int kRounds = 4;                        // until it is the turn of others

bool BytesWait(int fd) {
  int bytes = 0;
  return fd >= 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

Connection::Connection(int client, std::shared_ptr<SSL> tls, Shared& shared, base::SteadyTime now)
    : client_(client),
      tls_(std::move(tls)),
      shared_(shared),
      meter_(shared.limits, shared.budget, now),
      opened_(now),
      moved_(now),
      greeted_(tls_ == nullptr) {}

Connection::~Connection() {
  shared_.held -= static_cast<int64_t>(in_.size() + out_.size());
  if (greeted_ && tls_ != nullptr) SSL_shutdown(tls_.get());
  ERR_clear_error();
  close(client_);
  if (server_ >= 0) close(server_);
}

void Connection::Hold(std::string& place, std::string_view bytes) {
  shared_.held += static_cast<int64_t>(bytes.size()) - static_cast<int64_t>(place.size());
  if (bytes.empty()) {
    place = {};
  } else {
    place = std::string(bytes);
  }
}

Connection::Io Connection::Read(char* to, size_t size, size_t& got) {
  got = 0;
  if (tls_ == nullptr) {
    const ssize_t read = recv(client_, to, size, 0);
    if (read > 0) got = static_cast<size_t>(read);
    if (read > 0) return Io::kDone;
    return read < 0 && (errno == EAGAIN || errno == EINTR) ? Io::kWait : Io::kEnd;
  }
  while (got < size) {
    size_t more = 0;
    const int result = SSL_read_ex(tls_.get(), to + got, size - got, &more);
    got += more;
    if (result == 1) continue;
    const int error = SSL_get_error(tls_.get(), result);
    ERR_clear_error();
    tls_wants_write_ = error == SSL_ERROR_WANT_WRITE;
    if (got > 0) return Io::kDone;
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? Io::kWait : Io::kEnd;
  }
  return Io::kDone;
}

Connection::Io Connection::Write(std::string_view bytes, size_t& sent) {
  sent = 0;
  while (sent < bytes.size()) {
    if (tls_ == nullptr) {
      const ssize_t written = send(client_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (written > 0) sent += static_cast<size_t>(written);
      if (written > 0) continue;
      return errno == EAGAIN || errno == EINTR ? Io::kWait : Io::kEnd;
    }
    size_t written = 0;
    const int result = SSL_write_ex(tls_.get(), bytes.data() + sent, bytes.size() - sent, &written);
    sent += written;
    if (result == 1) continue;
    const int error = SSL_get_error(tls_.get(), result);
    ERR_clear_error();
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? Io::kWait : Io::kEnd;
  }
  return Io::kDone;
}

bool Connection::Handshake() {
  const int result = SSL_accept(tls_.get());
  greeted_ = result == 1;
  if (greeted_) return true;
  const int error = SSL_get_error(tls_.get(), result);
  ERR_clear_error();
  tls_wants_write_ = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return true;
  why_ = "the TLS handshake failed";
  return false;
}

// The server gets its connection when the client has introduced itself and the budget has room.
bool Connection::HandOver(base::SteadyTime now) {
  paced_ = !shared_.budget.HasRoom(now);
  if (paced_) return true;
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    why_ = "no socket pair";
    return false;
  }
  server_ = pair[0];
  shared_.hand_over(pair[1]);
  return true;
}

bool Connection::Wants() const {
  const bool unknown = server_ < 0 && !meter_.introduced();
  return !client_ended_ && !paced_ && (passed_ == 0 || unknown);
}

bool Connection::Move(std::string& scratch, base::SteadyTime now) {
  again_ = false;
  if (!greeted_ && !Handshake()) return false;
  if (!greeted_) return true;
  scratch.resize(kMostAtOnce);
  const bool was_paced = paced_;
  if (!FromClient(scratch, now)) return false;
  if (!was_paced) paced_since_ = now;
  return FromServer(scratch, now);
}

bool Connection::FromClient(std::string& scratch, base::SteadyTime now) {
  for (int round = 0; round < kRounds; ++round) {
    const size_t most = shared_.held > kMuchHeld || server_ < 0 ? kLittleAtOnce : kMostAtOnce;
    size_t have = std::min(in_.size(), scratch.size());
    std::copy_n(in_.begin(), have, scratch.begin());
    Io read = Io::kWait;
    // What waits for the budget or the server stays as it is; only the rest of a frame's header is completed.
    if (Wants() && have < most) {
      size_t got = 0;
      read = Read(scratch.data() + have, most - have, got);
      client_ended_ = read == Io::kEnd;
      have += got;
      if (got > 0) moved_ = now;
    }
    const std::string_view all(scratch.data(), have);
    const CallMeter::Progress progress = meter_.FromClient(all.substr(passed_), now);
    const size_t passed = passed_ + progress.passed;
    if (progress.verdict == CallMeter::Verdict::kClose) {
      why_ = progress.why;
      return false;
    }
    paced_ = progress.verdict == CallMeter::Verdict::kWait;
    if (server_ < 0 && meter_.introduced() && !HandOver(now)) return false;
    size_t sent = 0;
    while (server_ >= 0 && sent < passed) {
      const ssize_t written = send(server_, scratch.data() + sent, passed - sent, MSG_NOSIGNAL);
      if (written > 0) sent += static_cast<size_t>(written);
      if (written > 0) continue;
      if (errno != EAGAIN && errno != EINTR) server_ended_ = true;
      break;
    }
    if (sent > 0 || read == Io::kDone || passed != passed_) {
      Hold(in_, all.substr(sent));
      passed_ = passed - sent;
    }
    if (client_ended_ && (passed_ == 0 || server_ < 0)) return false;
    if (read != Io::kDone || passed_ > 0 || paced_ || server_ended_) return true;
  }
  again_ = true;
  return true;
}

bool Connection::FromServer(std::string& scratch, base::SteadyTime now) {
  if (server_ < 0) return true;
  for (int round = 0; round < kRounds; ++round) {
    if (!out_.empty()) {
      size_t sent = 0;
      if (Write(out_, sent) == Io::kEnd) return false;
      if (sent > 0) moved_ = drained_ = now;
      if (sent > 0) Hold(out_, std::string(out_, sent));
      if (!out_.empty()) return true;
    }
    const size_t most = shared_.held > kMuchHeld ? kLittleAtOnce : kMostAtOnce;
    const ssize_t read = recv(server_, scratch.data(), most, 0);
    if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (read < 0) return !server_ended_;
    moved_ = drained_ = now;
    const std::string_view all(scratch.data(), static_cast<size_t>(read));
    meter_.FromServer(all, now);
    size_t sent = 0;
    if (Write(all, sent) == Io::kEnd) return false;
    if (sent < all.size()) Hold(out_, all.substr(sent));
  }
  again_ = true;
  return true;
}

bool Connection::HasWork() const { return !in_.empty() || !out_.empty() || BytesWait(client_) || BytesWait(server_); }

uint32_t Connection::client_events() const {
  uint32_t events = 0;
  if (!greeted_) return tls_wants_write_ ? EPOLLOUT : EPOLLIN;
  if (Wants()) events |= EPOLLIN;
  if (!out_.empty() || tls_wants_write_) events |= EPOLLOUT;
  return events;
}

uint32_t Connection::server_events() const {
  uint32_t events = 0;
  if (out_.empty()) events |= EPOLLIN;
  if (passed_ > 0) events |= EPOLLOUT;
  return events;
}

}  // namespace medley::http2_front
