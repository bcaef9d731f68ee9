// A client that sends what bytes a test wants, also wrong ones.
#pragma once

#include <string>
#include <string_view>

namespace medley::http_server {

class RawClient {
 public:
  explicit RawClient(int port);  // of 127.0.0.1
  ~RawClient();
  RawClient(RawClient&& other) noexcept : fd_(other.fd_), read_(std::move(other.read_)) { other.fd_ = -1; }

  // False when the server has closed the connection.
  bool Send(std::string_view bytes);
  // One response with its Content-Length; empty when the connection ended first, or after a minute.
  std::string Response();
  // Everything until the server closes the connection; at most a minute.
  std::string Rest();
  // Whether the server closes the connection within a minute, without another byte.
  bool Closed();

 private:
  bool Read();  // false at the end or after a minute

  int fd_;
  std::string read_;
  bool ended_ = false;
};

// A GET whose header has this many further lines of this many bytes.
std::string Get(std::string_view path, int lines = 0, size_t line_bytes = 8);

}  // namespace medley::http_server
