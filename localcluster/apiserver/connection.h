// One connection of the HTTP server: requests in, answers out, until either side has had enough.
// Internal to http_server.cc (it needs asio's headers).
#pragma once

#include "common/base/clock.h"

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <functional>
#include <stop_token>

#include "localcluster/apiserver/http.h"

namespace medley::kube::apiserver {

// When the connection has waited long enough; another thread looks. Thread-safe.
class Deadline {
 public:
  void In(std::chrono::seconds time) { at_ = (base::SystemClock().Steady() + time).time_since_epoch().count(); }
  void Never() { at_ = 0; }
  bool Passed() const {
    const int64_t at = at_;
    return at != 0 && base::SystemClock().Steady().time_since_epoch().count() > at;
  }

 private:
  std::atomic<int64_t> at_ = 0;
};

struct ConnectionContext {
  int64_t max_body;
  Deadline* deadline;
  const std::function<HttpResponse(const HttpRequest&)>* handler;
};

// Returns when the connection has ended. Never throws. `tls` null: plain.
void ServeConnection(boost::asio::ip::tcp::socket& socket, boost::asio::ssl::context* tls,
                     const ConnectionContext& context, std::stop_token stop);

}  // namespace medley::kube::apiserver
