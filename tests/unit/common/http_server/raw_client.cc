#include "tests/unit/common/http_server/raw_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace medley::http_server {

RawClient::RawClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) ended_ = true;
}

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool RawClient::Read() {
  if (ended_) return false;
  pollfd ready{fd_, POLLIN, 0};
  if (::poll(&ready, 1, 60'000) <= 0) return false;
  char bytes[65536];
  const ssize_t n = ::recv(fd_, bytes, sizeof(bytes), 0);
  ended_ = n <= 0;
  if (n > 0) read_.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

std::string RawClient::Response() {
  for (;;) {
    const size_t head = read_.find("\r\n\r\n");
    if (head != std::string::npos) {
      const size_t field = read_.find("Content-Length: ");
      const size_t body = field < head ? std::stoul(read_.substr(field + 16)) : 0;
      if (read_.size() >= head + 4 + body) {
        std::string response = read_.substr(0, head + 4 + body);
        read_.erase(0, head + 4 + body);
        return response;
      }
    }
    if (!Read()) return "";
  }
}

std::string RawClient::Rest() {
  while (Read()) continue;
  return std::exchange(read_, "");
}

bool RawClient::Closed() {
  while (read_.empty() && Read()) continue;
  return read_.empty() && ended_;
}

std::string Get(std::string_view path, int lines, size_t line_bytes) {
  std::string text = fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n", path);
  for (int i = 0; i < lines; ++i) {
    std::string line = fmt::format("h{}: ", i);
    line.resize(std::max(line.size(), line_bytes - 2), 'v');
    text += line + "\r\n";
  }
  return text + "\r\n";
}

}  // namespace medley::http_server
