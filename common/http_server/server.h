// HTTP/1.1 over plain sockets or TLS: one thread per connection, keep-alive, pipelining, chunked streams.
//
//   http_server::HttpServer server({.port = 9090, .max_body = 0}, [](const HttpRequest&) { return HttpResponse(); });
//   MEDLEY_RETURN_IF_ERROR(server.Start());
//
// Bounded against hostile clients: connections, the bytes and lines of headers, bodies, the memory of all requests that
// are being read, and the time of each phase. A silent client uses only a thread, and loses its connection when a new
// client needs the place.
//
// Thread-safe. Start once; Stop is idempotent: it ends every connection and joins every thread.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http_server/message.h"

namespace medley::http_server {

// Bytes and lines of the header of one request; more get 431.
inline constexpr int64_t kMaxHeaderBytes = int64_t{64} << 10;
inline constexpr int kMaxHeaderLines = 128;

class HttpServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";  // or a name of this machine
    int port = 0;                       // 0: the system chooses
    // When all are in use, a new client replaces the connection that has waited longest for a request. While every
    // connection works on a request, new clients get 429.
    int max_connections = 256;
    int64_t max_body = 3 << 20;                          // bytes; more get 413
    int64_t max_request_memory = int64_t{64} << 20;      // headers and bodies of all requests being read; more get 503
    std::chrono::milliseconds header_timeout{10'000};    // from the first byte of a request to the end of its header
    std::chrono::milliseconds idle_timeout{300'000};     // between requests
    std::chrono::milliseconds transfer_timeout{60'000};  // of a body, of a handshake and of each write
    // PEM files; empty: plain HTTP. They are read again when they change: a new connection uses the newest valid ones.
    std::filesystem::path certificate, key, client_ca;
    std::string certificate_pem, key_pem;     // instead of the first two files, from memory
    bool require_client_certificate = false;  // false: a client of `client_ca` may also show none
    // Called with a request whose body has not been read yet. A response refuses the request, and the body is never
    // read. Called by the connections' threads, many at a time. Null: every request is read.
    std::function<std::optional<HttpResponse>(const HttpRequest& header)> admit;
    // Called once for each connection that did not end properly, with a reason of connection.h.
    std::function<void(const char* reason)> ended;
    // Makes the response when the server itself refuses a request. Null: plain text.
    std::function<HttpResponse(int code, const std::string& message)> refuse;
  };
  // Called by the connections' threads, many at a time. An exception becomes a response with code 500.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  HttpServer(Options options, Handler handler);
  ~HttpServer();

  // Errors: Unavailable naming the address when it is in use; InvalidArgument for a bad address or certificate,
  // NotFound for a missing one.
  absl::Status Start();
  void Stop();
  // With false, ends every connection and refuses new ones until called with true. Returns when this has taken effect.
  // Errors: FailedPrecondition (another process took the port meanwhile, or the server is not running),
  // DeadlineExceeded.
  absl::Status SetListening(bool listening);
  int port() const;
  bool tls() const;
  int64_t connections() const;  // accepted so far
  int64_t open() const;         // connections
  // The number of requests that have been read and whose response has not been sent completely.
  int answering() const;
  // Waits until this number is 0; returns false after `timeout`.
  bool WaitAnswered(base::nanoseconds timeout);

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace medley::http_server
