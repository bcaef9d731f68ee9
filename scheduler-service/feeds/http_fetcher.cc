#include "scheduler-service/feeds/http_fetcher.h"

#include <absl/strings/match.h>

#include <algorithm>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/http_client/connection.h"

namespace medley::sched {
namespace {

constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(24);

absl::StatusOr<std::string> ReadToken(const std::filesystem::path& path) {
  auto text = base::ReadFile(path, 1 << 20);
  if (!text.ok()) return base::FailedPrecondition("token file: {}", base::Message(text.status()));
  const std::string_view token = base::Trim(*text);
  if (token.empty()) return base::FailedPrecondition("token file {} is empty", path.string());
  if (token.find_first_of("\r\n") != std::string_view::npos) {
    return base::FailedPrecondition("token file {} has more than one line", path.string());
  }
  return std::string(token);
}

http_client::Request RequestFor(const HttpOptions& options, const FetchRequest& request, const std::string& token) {
  http_client::Request out;
  out.url = request.url;
  out.headers = request.headers;
  out.body = request.form;
  out.timeout = options.total_timeout;
  out.max_body_bytes = options.max_body_bytes;
  if (request.form) {
    out.method = "POST";
    const bool typed = std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
      return absl::EqualsIgnoreCase(header.first, "content-type");
    });
    if (!typed) out.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  } else {
    out.max_redirects = options.max_redirects;
  }
  if (!token.empty()) out.headers.emplace_back("Authorization", "Bearer " + token);
  if (!request.etag.empty()) out.headers.emplace_back("If-None-Match", request.etag);
  if (!request.last_modified.empty()) out.headers.emplace_back("If-Modified-Since", request.last_modified);
  return out;
}

}  // namespace

CurlFetcher::CurlFetcher(HttpOptions options, base::Clock& clock) : options_(std::move(options)), clock_(clock) {}

absl::StatusOr<FetchReply> CurlFetcher::Fetch(const FetchRequest& request, std::stop_token stop) {
  const std::string what = WithoutQuery(request.url);
  if (Origin(request.url).empty()) return base::InvalidArgument("{}: not an absolute http or https URL", what);
  std::string token;
  if (!options_.bearer_token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(token, ReadToken(options_.bearer_token_file));
  }
  http_client::Connection connection({.user_agent = options_.user_agent,
                                      .connect_timeout = options_.connect_timeout,
                                      .gzip = true,
                                      .proxy = options_.proxy,
                                      .proxy_of_environment = options_.proxy_from_environment,
                                      .authorities_file = options_.ca_file});
  http_client::Result result = connection.Run(RequestFor(options_, request, token), what, stop);
  MEDLEY_RETURN_IF_ERROR(result.status);
  const http_client::Response& response = result.response;
  return FetchReply{response.code, response.body, response.Header("ETag"), response.Header("Last-Modified"),
                    response.RetryAfter(clock_, kMaxRetryAfter)};
}

}  // namespace medley::sched
