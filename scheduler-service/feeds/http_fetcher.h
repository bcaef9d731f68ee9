// One HTTP exchange with a price source, with limits on time, size and redirects.
//
// An interface, so that feeds are tested without a network (testing/fake_fetcher.h); CurlFetcher is the real one.
//   CurlFetcher fetcher({.ca_file = "/etc/prices/ca.pem"}, clock);
//   MEDLEY_ASSIGN_OR_RETURN(FetchReply reply, fetcher.Fetch({.url = "https://prices.azure.com/..."}, stop));
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::sched {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct FetchRequest {
  std::string url;  // absolute, http or https
  HttpHeaders headers;
  std::optional<std::string> form;  // makes it a POST of application/x-www-form-urlencoded, which is never redirected
  std::string etag;                 // non-empty: If-None-Match
  std::string last_modified;        // non-empty: If-Modified-Since
};

struct FetchReply {
  int code = 0;  // any: the feed decides what a 304, 429 or 500 means (StatusOfReply)
  std::string body;
  std::string etag;
  std::string last_modified;
  std::optional<std::chrono::seconds> retry_after;  // from seconds or from a date, in [0, 24 h]
};

// Thread-safe.
class HttpFetcher {
 public:
  virtual ~HttpFetcher() = default;
  // One exchange. Errors are those of the transport: Unavailable (refused, unknown host, connection broken),
  // DeadlineExceeded, Cancelled (`stop`), ResourceExhausted (body over the limit), FailedPrecondition (TLS does not
  // verify, token file), PermissionDenied (a redirect that is not allowed), InvalidArgument (no URL). They name the
  // scheme, host and path of the URL, never its query, which may hold secrets.
  virtual absl::StatusOr<FetchReply> Fetch(const FetchRequest& request, std::stop_token stop) = 0;
};

struct HttpOptions {
  std::chrono::milliseconds connect_timeout{5'000};
  // A name server that hangs may add its own timeout (resolv.conf) to both: libcurl waits for its resolver's thread.
  std::chrono::milliseconds total_timeout{60'000};  // from the call to the last byte, redirects included
  size_t max_body_bytes = size_t{64} << 20;         // after decompression
  int max_redirects = 3;                            // never from https to http
  std::filesystem::path ca_file;                    // PEM; empty: the system's authorities
  std::filesystem::path bearer_token_file;          // read again for every request; empty: none
  std::string proxy;                                // "http://host:port"; empty: none
  bool proxy_from_environment = false;              // http_proxy, https_proxy, no_proxy
  std::string user_agent = "medley-scheduler";
};

// Over common/http_client. Every exchange has its own connection: polls are minutes apart.
class CurlFetcher final : public HttpFetcher {
 public:
  CurlFetcher(HttpOptions options, base::Clock& clock);
  absl::StatusOr<FetchReply> Fetch(const FetchRequest& request, std::stop_token stop) override;

 private:
  const HttpOptions options_;
  base::Clock& clock_;
};

// OK for 200 and 304. Otherwise an error for the code (429: ResourceExhausted; 408, 5xx: Unavailable; 401:
// Unauthenticated; 403: PermissionDenied; 404: NotFound; 3xx, a redirect that was not followed: PermissionDenied; other
// 4xx: InvalidArgument), with the beginning of the body.
absl::Status StatusOfReply(const FetchReply& reply, const std::string& what);

// "https://host:8443/path?query" without the query: for messages.
std::string WithoutQuery(const std::string& url);
// Scheme, host and port of an absolute URL in lower case, its default port written out; empty for any other text.
std::string Origin(const std::string& url);

}  // namespace medley::sched
