// The parts of http_fetcher.h that are only text.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/base/status.h"
#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {
namespace {

constexpr size_t kShownBody = 200;

// The beginning of a body on one line, for messages.
std::string Beginning(const std::string& body) {
  std::string text = body.substr(0, kShownBody);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (body.size() > kShownBody) text += "...";
  return text;
}

}  // namespace

absl::Status StatusOfReply(const FetchReply& reply, const std::string& what) {
  if (reply.code == 200 || reply.code == 304) return absl::OkStatus();
  const std::string message = reply.body.empty()
                                  ? fmt::format("{}: HTTP {}", what, reply.code)
                                  : fmt::format("{}: HTTP {}: {}", what, reply.code, Beginning(reply.body));
  if (reply.code == 401) return base::MakeStatus(absl::StatusCode::kUnauthenticated, message);
  if (reply.code == 403) return base::MakeStatus(absl::StatusCode::kPermissionDenied, message);
  if (reply.code == 404) return base::MakeStatus(absl::StatusCode::kNotFound, message);
  if (reply.code == 429) return base::MakeStatus(absl::StatusCode::kResourceExhausted, message);
  if (reply.code == 408 || reply.code >= 500) {
    return base::MakeStatus(absl::StatusCode::kUnavailable, message);
  }
  if (reply.code >= 300 && reply.code < 400) return base::MakeStatus(absl::StatusCode::kPermissionDenied, message);
  if (reply.code >= 400) return base::MakeStatus(absl::StatusCode::kInvalidArgument, message);
  return base::MakeStatus(absl::StatusCode::kUnavailable, message);
}

std::string WithoutQuery(const std::string& url) {
  std::string text = url.substr(0, url.find_first_of("?#"));
  // Nor "user:password@".
  if (const size_t scheme = text.find("://"); scheme != std::string::npos) {
    const size_t host = scheme + 3;
    const size_t at = text.substr(0, text.find('/', host)).rfind('@');
    if (at != std::string::npos && at >= host) text.erase(host, at + 1 - host);
  }
  return text;
}

std::string Origin(const std::string& url) {
  if (url.find('\\') != std::string::npos) return "";  // which some take for a slash
  std::string text = WithoutQuery(url);
  if (!std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; })) {
    return "";
  }
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  const bool https = text.starts_with("https://");
  if (!https && !text.starts_with("http://")) return "";
  const size_t host = text.find("://") + 3;
  text.erase(std::min(text.find('/', host), text.size()));
  if (text.size() == host) return "";
  const size_t colon = text.rfind(':');
  const bool has_port = colon >= host && colon != std::string::npos && text.find(']', colon) == std::string::npos;
  if (!has_port) text += https ? ":443" : ":80";
  return text;
}

}  // namespace medley::sched
