// A loopback HTTP(S) server that returns responses from a function of the test, and can simulate network faults.
//
//   ReplayServer server([](const ReplayRequest& request) { return ReplayReply{.body = "[]"}; });
//   fetcher.Fetch({.url = server.url() + "/prices"}, stop);
//
// Handles one request per connection. Each connection has a thread, which calls the handler, so the handler must lock
// shared state. The destructor stops, closes and joins.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace medley::sched {

struct ReplayRequest {
  std::string method;
  std::string target;                          // path and query as sent
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct ReplayReply {
  enum class Fault {
    kNone,
    kTruncate,  // announces the whole body, sends half of it and closes the connection
    kHang,      // reads the request and never answers
    kReset,     // closes the connection before sending a byte
  };
  int code = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Fault fault = Fault::kNone;
};

class ReplayServer {
 public:
  using Handler = std::function<ReplayReply(const ReplayRequest& request)>;
  struct Tls {  // PEM
    std::string certificate, key;
  };

  explicit ReplayServer(Handler handler, const Tls* tls = nullptr);
  ~ReplayServer();

  int port() const;
  std::string url() const;  // "http://127.0.0.1:PORT"
  std::vector<ReplayRequest> requests() const;
  // Waits, at most a minute, until `n` requests have come.
  bool WaitForRequests(size_t n) const;

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

// A loopback port that refuses connections. It is bound for as long as this object lives, so no other process can
// listen on it in the meantime.
class RefusingPort {
 public:
  RefusingPort();
  ~RefusingPort();
  int port() const;

 private:
  struct Rep;
  const std::unique_ptr<Rep> rep_;
};

// A loopback port that was free a moment ago. Another process may take it before the caller does: be ready to retry.
int UnusedPort();

}  // namespace medley::sched
