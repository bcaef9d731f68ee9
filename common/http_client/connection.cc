#include "common/http_client/connection.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "common/base/status.h"
#include "common/base/text.h"

namespace medley::http_client {
namespace {

constexpr int kPollMs = 1000;
// Go's client asks by HTTP/2 pings after 30 s and gives 15 s for the answer.
constexpr long kKeepAliveIdleSeconds = 30;
constexpr long kKeepAliveIntervalSeconds = 5;
constexpr int kKeepAliveProbes = 3;
constexpr unsigned kUnacknowledgedMs = 45'000;

// libcurl's own global state, made once; its initialisation is thread-safe from 7.84 on.
void InitCurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  MEDLEY_CHECK(code == CURLE_OK, "curl_global_init failed");
}

// A kernel that lacks these options serves connections without them.
int OnSocket(void*, curl_socket_t socket, curlsocktype) {
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof(kKeepAliveProbes));
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs, sizeof(kUnacknowledgedMs));
  return CURL_SOCKOPT_OK;
}

}  // namespace

std::string Response::Header(std::string_view name) const {
  const std::string wanted(name);
  for (auto header = headers.rbegin(); header != headers.rend(); ++header) {
    if (curl_strequal(header->first.c_str(), wanted.c_str()) != 0) return header->second;
  }
  return "";
}

std::optional<std::chrono::seconds> Response::RetryAfter(const base::Clock& clock, std::chrono::seconds most) const {
  const std::string value = Header("Retry-After");
  if (value.empty()) return std::nullopt;
  int64_t wait = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), wait);
  if (error != std::errc() || end != value.data() + value.size()) {
    const time_t date = curl_getdate(value.c_str(), nullptr);
    if (date < 0) return std::nullopt;
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock.Now().time_since_epoch()).count();
    wait = std::max<int64_t>(static_cast<int64_t>(date) - now, 0);
  }
  if (wait < 0) return std::nullopt;
  return std::min(std::chrono::seconds(wait), most);
}

class Connection::Handle {
 public:
  explicit Handle(Options options) : options_(std::move(options)) {
    InitCurl();
    multi_ = curl_multi_init();
    curl_ = curl_easy_init();
    MEDLEY_CHECK(curl_ != nullptr && multi_ != nullptr, "curl_easy_init failed");
    Setup();
  }
  ~Handle() {
    curl_easy_cleanup(curl_);
    curl_multi_cleanup(multi_);
    curl_slist_free_all(headers_);
    curl_slist_free_all(connect_to_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Result Run(const Request& request, const std::string& what, std::stop_token stop,
             const std::function<bool(std::string_view)>& on_bytes) {
    result_ = Result();
    on_bytes_ = on_bytes ? &on_bytes : nullptr;
    max_body_bytes_ = request.max_body_bytes;
    too_large_ = false;
    error_[0] = '\0';
    // The URL comes from a configuration or from the wire: what curl cannot take is no broken invariant.
    if (curl_easy_setopt(curl_, CURLOPT_URL, request.url.c_str()) != CURLE_OK) {
      return {.status = base::InvalidArgument("{}: not a URL", what)};
    }
    Prepare(request);
    bool silent = false;
    const CURLcode code = Perform(stop, request.first_byte_timeout, silent);
    result_.response.code = static_cast<int>(Info(CURLINFO_RESPONSE_CODE));
    result_.refused = code == CURLE_COULDNT_CONNECT && Info(CURLINFO_OS_ERRNO) == ECONNREFUSED;
    result_.status = Outcome(code, request, what, stop, silent);
    return std::move(result_);
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(curl_, option, value);
    MEDLEY_CHECK(code == CURLE_OK, curl_easy_strerror(code));
  }
  long Info(CURLINFO info) const {
    long value = 0;
    curl_easy_getinfo(curl_, info, &value);
    return value;
  }
  void Header(const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); }

  void Setup() {
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_USERAGENT, options_.user_agent.c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    if (options_.gzip) Set(CURLOPT_ACCEPT_ENCODING, "gzip");
    if (!options_.proxy_of_environment) Set(CURLOPT_PROXY, options_.proxy.c_str());
    Set(CURLOPT_WRITEFUNCTION, &Handle::OnBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_HEADERFUNCTION, &Handle::OnHeader);
    Set(CURLOPT_HEADERDATA, this);
    if (options_.probe_silent_peers) {
      Set(CURLOPT_TCP_KEEPALIVE, 1L);
      Set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
      Set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
      Set(CURLOPT_SOCKOPTFUNCTION, &OnSocket);
    }
    if (!options_.connect_to.empty()) {
      connect_to_ = curl_slist_append(nullptr, ("::" + options_.connect_to).c_str());
      Set(CURLOPT_CONNECT_TO, connect_to_);
    }
    SetupTls();
  }

  void SetupTls() {
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, options_.insecure_skip_verify ? 0L : 1L);
    Set(CURLOPT_SSL_VERIFYHOST, options_.insecure_skip_verify ? 0L : 2L);
    const auto blob = [&](CURLoption option, const std::string& text) {
      if (text.empty()) return;
      // curl copies the bytes; its type is not const.
      curl_blob value{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
      Set(option, &value);
    };
    blob(CURLOPT_CAINFO_BLOB, options_.authorities);
    blob(CURLOPT_SSLCERT_BLOB, options_.certificate);
    blob(CURLOPT_SSLKEY_BLOB, options_.key);
    if (!options_.authorities_file.empty()) Set(CURLOPT_CAINFO, options_.authorities_file.c_str());
  }

  void Prepare(const Request& request) {
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    Set(CURLOPT_FOLLOWLOCATION, request.max_redirects > 0 ? 1L : 0L);
    Set(CURLOPT_MAXREDIRS, static_cast<long>(request.max_redirects));
    Set(CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https://") ? "https" : "http,https");
    curl_slist_free_all(headers_);
    headers_ = nullptr;
    Header("Expect:");
    for (const auto& [name, value] : request.headers) Header(name + ": " + value);
    Set(CURLOPT_HTTPHEADER, headers_);
    const bool head = request.method == "HEAD";
    Set(CURLOPT_NOBODY, 0L);  // before what sets the method
    if (request.body) {
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body->size()));
      Set(CURLOPT_COPYPOSTFIELDS, request.body->c_str());
    } else {
      Set(CURLOPT_HTTPGET, 1L);
    }
    // Only where the method is not the one that curl would choose: a redirect may change it.
    const char* const chosen = head ? "HEAD" : request.body ? "POST" : "GET";
    Set(CURLOPT_CUSTOMREQUEST, request.method == chosen ? nullptr : request.method.c_str());
    if (head) Set(CURLOPT_NOBODY, 1L);  // else curl would wait for the body that the header announces
  }

  // Runs the exchange until it is over, `stop`, or no header has come in time.
  CURLcode Perform(const std::stop_token& stop, std::chrono::milliseconds first_byte_timeout, bool& silent) {
    const base::SystemClock clock;  // sockets live in real time
    const base::SteadyTime header_by = clock.Steady() + first_byte_timeout;
    curl_multi_add_handle(multi_, curl_);
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    {
      const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi_); });
      int running = 1;
      while (!stop.stop_requested()) {
        if (curl_multi_perform(multi_, &running) != CURLM_OK || running == 0) break;
        silent = first_byte_timeout.count() > 0 && Info(CURLINFO_RESPONSE_CODE) == 0 && clock.Steady() >= header_by;
        if (silent) break;
        curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
      }
    }
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi_, &left); message != nullptr) {
      code = message->data.result;
    }
    curl_multi_remove_handle(multi_, curl_);  // an unfinished exchange loses its connection
    return code;
  }

  absl::Status Outcome(CURLcode code, const Request& request, const std::string& what, const std::stop_token& stop,
                       bool silent) {
    if (code == CURLE_OK || result_.ended_by_sink) return absl::OkStatus();
    if (stop.stop_requested()) return base::Cancelled("{}: stopped", what);
    if (silent) return base::DeadlineExceeded("{}: no answer", what);
    if (too_large_) {
      return base::ResourceExhausted("{}: the answer is larger than {} bytes", what, request.max_body_bytes);
    }
    const std::string why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        return base::DeadlineExceeded("{}: {}", what, why);
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_ISSUER_ERROR:
        return base::FailedPrecondition("{}: TLS: {}", what, why);
      case CURLE_SSL_CONNECT_ERROR:
        // What OpenSSL objects to (a signature, no TLS at all there) stays so; a connection that breaks may pass.
        if (why.find("error:") != std::string::npos) return base::FailedPrecondition("{}: TLS: {}", what, why);
        return base::Unavailable("{}: TLS: {}", what, why);
      case CURLE_TOO_MANY_REDIRECTS:
        return base::PermissionDenied("{}: more than {} redirects", what, request.max_redirects);
      case CURLE_UNSUPPORTED_PROTOCOL:
        if (!result_.response.Header("Location").empty() || Info(CURLINFO_REDIRECT_COUNT) > 0) {
          return base::PermissionDenied("{}: redirected to another scheme", what);
        }
        return base::InvalidArgument("{}: {}", what, why);
      case CURLE_URL_MALFORMAT:
        return base::InvalidArgument("{}: {}", what, why);
      default:
        return base::Unavailable("{}: {}", what, why);
    }
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* pointer) {
    auto& self = *static_cast<Handle*>(pointer);
    const std::string_view bytes(data, size * count);
    std::string& body = self.result_.response.body;
    const long code = self.Info(CURLINFO_RESPONSE_CODE);
    if (self.on_bytes_ != nullptr && (code == 200 || code == 206)) {
      self.result_.ended_by_sink = !(*self.on_bytes_)(bytes);
      return self.result_.ended_by_sink ? 0 : bytes.size();
    }
    if (bytes.size() > self.max_body_bytes_ - body.size()) {
      self.too_large_ = true;
      return 0;
    }
    body.append(bytes);
    return bytes.size();
  }

  static size_t OnHeader(char* data, size_t size, size_t count, void* pointer) {
    auto& self = *static_cast<Handle*>(pointer);
    const std::string_view line(data, size * count);
    if (line.starts_with("HTTP/")) {  // of the next response: what came before was a redirect or a 1xx
      self.result_.response = Response();
      return line.size();
    }
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      self.result_.response.headers.emplace_back(line.substr(0, colon), base::Trim(line.substr(colon + 1)));
    }
    return line.size();
  }

  const Options options_;
  CURLM* multi_ = nullptr;
  CURL* curl_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  Result result_;
  const std::function<bool(std::string_view)>* on_bytes_ = nullptr;
  size_t max_body_bytes_ = 0;
  bool too_large_ = false;
  char error_[CURL_ERROR_SIZE] = {};
};

Connection::Connection(Options options) : handle_(std::make_unique<Handle>(std::move(options))) {}
Connection::~Connection() = default;

Result Connection::Run(const Request& request, const std::string& what, std::stop_token stop,
                       const std::function<bool(std::string_view)>& on_bytes) {
  return handle_->Run(request, what, std::move(stop), on_bytes);
}

}  // namespace medley::http_client
