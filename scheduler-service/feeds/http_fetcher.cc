#include "scheduler-service/feeds/http_fetcher.h"

#include <curl/curl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr int kPollMs = 1000;
constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(24);

// libcurl's own global state, made once; its initialisation is thread-safe from 7.84 on.
void InitCurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  MEDLEY_CHECK(code == CURLE_OK, "curl_global_init failed");
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

absl::StatusOr<std::string> ReadToken(const std::filesystem::path& path) {
  auto text = base::ReadFile(path, 1 << 20);
  if (!text.ok()) return base::FailedPrecondition("token file: {}", base::Message(text.status()));
  const std::string_view token = Trim(*text);
  if (token.empty()) return base::FailedPrecondition("token file {} is empty", path.string());
  if (token.find_first_of("\r\n") != std::string_view::npos) {
    return base::FailedPrecondition("token file {} has more than one line", path.string());
  }
  return std::string(token);
}

// One exchange: an easy handle, what it was given, and what its callbacks fill.
class Exchange {
 public:
  Exchange(const HttpOptions& options, const FetchRequest& request, base::Clock& clock)
      : options_(options), clock_(clock), what_(WithoutQuery(request.url)), curl_(curl_easy_init()) {
    MEDLEY_CHECK(curl_ != nullptr, "curl_easy_init failed");
  }
  ~Exchange() {
    curl_easy_cleanup(curl_);
    curl_slist_free_all(headers_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  absl::Status Prepare(const FetchRequest& request, const std::string& token) {
    const bool https = request.url.starts_with("https://");
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_USERAGENT, options_.user_agent.c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.total_timeout.count()));
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
    Set(CURLOPT_ACCEPT_ENCODING, "gzip");
    Set(CURLOPT_WRITEFUNCTION, &Exchange::OnBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_HEADERFUNCTION, &Exchange::OnHeader);
    Set(CURLOPT_HEADERDATA, this);
    if (!options_.proxy_from_environment) Set(CURLOPT_PROXY, options_.proxy.c_str());
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options_.ca_file.empty()) Set(CURLOPT_CAINFO, options_.ca_file.c_str());
    SetHeaders(request, token);
    if (request.form) {
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.form->size()));
      Set(CURLOPT_COPYPOSTFIELDS, request.form->c_str());
    } else {
      Set(CURLOPT_FOLLOWLOCATION, 1L);
      Set(CURLOPT_MAXREDIRS, static_cast<long>(options_.max_redirects));
    }
    // The URL comes from a configuration or from the wire: what curl cannot take is an error, not a
    // broken invariant.
    if (curl_easy_setopt(curl_, CURLOPT_URL, request.url.c_str()) != CURLE_OK) {
      return base::InvalidArgument("{}: not a URL", what_);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FetchReply> Perform(std::stop_token stop) {
    const std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi(curl_multi_init(), &curl_multi_cleanup);
    MEDLEY_CHECK(multi != nullptr, "curl_multi_init failed");
    curl_multi_add_handle(multi.get(), curl_);
    {
      const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
      int running = 1;
      while (!stop.stop_requested()) {
        if (curl_multi_perform(multi.get(), &running) != CURLM_OK || running == 0) break;
        curl_multi_poll(multi.get(), nullptr, 0, kPollMs, nullptr);
      }
    }
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi.get(), &left); message != nullptr) {
      code = message->data.result;
    }
    absl::Status status = Outcome(code, stop);
    curl_multi_remove_handle(multi.get(), curl_);
    if (!status.ok()) return status;
    long http = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &http);
    reply_.code = static_cast<int>(http);
    return std::move(reply_);
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(curl_, option, value);
    MEDLEY_CHECK(code == CURLE_OK, curl_easy_strerror(code));
  }
  void Header(const std::string& name, const std::string& value) {
    headers_ = curl_slist_append(headers_, (name + ": " + value).c_str());
  }

  void SetHeaders(const FetchRequest& request, const std::string& token) {
    headers_ = curl_slist_append(headers_, "Expect:");
    for (const auto& [name, value] : request.headers) Header(name, value);
    if (request.form && !Has(request.headers, "content-type")) {
      Header("Content-Type", "application/x-www-form-urlencoded");
    }
    if (!token.empty()) Header("Authorization", "Bearer " + token);
    if (!request.etag.empty()) Header("If-None-Match", request.etag);
    if (!request.last_modified.empty()) Header("If-Modified-Since", request.last_modified);
    Set(CURLOPT_HTTPHEADER, headers_);
  }

  static bool Has(const HttpHeaders& headers, const char* name) {
    return std::any_of(headers.begin(), headers.end(),
                       [&](const auto& header) { return curl_strequal(header.first.c_str(), name) != 0; });
  }

  absl::Status Outcome(CURLcode code, const std::stop_token& stop) const {
    if (code == CURLE_OK) return absl::OkStatus();
    if (stop.stop_requested()) return base::Cancelled("{}: stopped", what_);
    if (too_large_) {
      return base::ResourceExhausted("{}: the answer is larger than {} bytes", what_, options_.max_body_bytes);
    }
    const std::string why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    long redirects = 0;
    curl_easy_getinfo(curl_, CURLINFO_REDIRECT_COUNT, &redirects);
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        return base::DeadlineExceeded("{}: {}", what_, why);
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_ISSUER_ERROR:
        return base::FailedPrecondition("{}: TLS: {}", what_, why);
      case CURLE_SSL_CONNECT_ERROR:
        // What OpenSSL objects to (a signature, no TLS at all there) stays so; a connection that
        // breaks may pass.
        if (why.find("error:") != std::string::npos) return base::FailedPrecondition("{}: TLS: {}", what_, why);
        return base::Unavailable("{}: TLS: {}", what_, why);
      case CURLE_TOO_MANY_REDIRECTS:
        return base::PermissionDenied("{}: more than {} redirects", what_, options_.max_redirects);
      case CURLE_UNSUPPORTED_PROTOCOL:
        if (saw_location_) return base::PermissionDenied("{}: a redirect to another scheme: {}", what_, why);
        return base::InvalidArgument("{}: {}", what_, why);
      case CURLE_URL_MALFORMAT:
        return base::InvalidArgument("{}: {}", what_, why);
      default:
        return base::Unavailable("{}: {}", what_, why);
    }
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* pointer) {
    auto& self = *static_cast<Exchange*>(pointer);
    const size_t bytes = size * count;
    if (bytes > self.options_.max_body_bytes - self.reply_.body.size()) {
      self.too_large_ = true;
      return 0;
    }
    self.reply_.body.append(data, bytes);
    return bytes;
  }

  static size_t OnHeader(char* data, size_t size, size_t count, void* pointer) {
    auto& self = *static_cast<Exchange*>(pointer);
    const std::string_view line(data, size * count);
    if (line.starts_with("HTTP/")) {  // of the next answer: what came before was a redirect or a 1xx
      self.reply_ = FetchReply();
      return line.size();
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return line.size();
    const std::string name(line.substr(0, colon));
    const std::string value(Trim(line.substr(colon + 1)));
    const auto is = [&](const char* other) { return curl_strequal(name.c_str(), other) != 0; };
    if (is("etag")) self.reply_.etag = value;
    if (is("last-modified")) self.reply_.last_modified = value;
    if (is("location")) self.saw_location_ = true;
    if (is("retry-after")) self.reply_.retry_after = self.RetryAfter(value);
    return line.size();
  }

  std::optional<std::chrono::seconds> RetryAfter(const std::string& value) const {
    int64_t wait = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), wait);
    if (error != std::errc() || end != value.data() + value.size()) {
      const time_t date = curl_getdate(value.c_str(), nullptr);
      if (date < 0) return std::nullopt;
      wait = static_cast<int64_t>(date) -
             std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
      wait = std::max<int64_t>(wait, 0);
    }
    if (wait < 0) return std::nullopt;
    return std::min(std::chrono::seconds(wait), kMaxRetryAfter);
  }

  const HttpOptions& options_;
  base::Clock& clock_;
  const std::string what_;
  CURL* const curl_;
  curl_slist* headers_ = nullptr;
  FetchReply reply_;
  bool too_large_ = false;
  bool saw_location_ = false;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace

CurlFetcher::CurlFetcher(HttpOptions options, base::Clock& clock) : options_(std::move(options)), clock_(clock) {
  InitCurl();
}

absl::StatusOr<FetchReply> CurlFetcher::Fetch(const FetchRequest& request, std::stop_token stop) {
  if (Origin(request.url).empty()) {
    return base::InvalidArgument("{}: not an absolute http or https URL", WithoutQuery(request.url));
  }
  std::string token;
  if (!options_.bearer_token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(token, ReadToken(options_.bearer_token_file));
  }
  Exchange exchange(options_, request, clock_);
  MEDLEY_RETURN_IF_ERROR(exchange.Prepare(request, token));
  return exchange.Perform(stop);
}

}  // namespace medley::sched
