#include "kube/client/curl_session.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::kube {
namespace {

constexpr size_t kMaxBody = size_t{1} << 30;
constexpr size_t kMaxIdle = 16;
constexpr int kPollMs = 1000;
// A peer that went without a word (a node that lost power) is noticed after this, also in a quiet watch:
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

bool IsLoopback(const std::string& server) {
  for (const char* host : {"://127.", "://localhost", "://[::1]"}) {
    if (server.find(host) != std::string::npos) return true;
  }
  return false;
}

curl_blob Blob(const std::string& text) {
  // curl copies the bytes (CURL_BLOB_COPY); its type is not const.
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

}  // namespace

// One easy handle with its connection, which it keeps between requests, and what its callbacks fill.
class CurlSession::Handle {
 public:
  Handle(const ClientConfig& config, const Credentials::Snapshot& who)
      : tls_generation(who.tls_generation), multi_(curl_multi_init()), curl_(curl_easy_init()) {
    MEDLEY_CHECK(curl_ != nullptr && multi_ != nullptr, "curl_easy_init failed");
    Setup(config, who);
  }
  ~Handle() {
    curl_easy_cleanup(curl_);
    curl_multi_cleanup(multi_);
    curl_slist_free_all(headers_);
    curl_slist_free_all(connect_to_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  // Runs what was prepared until it is over, `stop`, or `give_up` (looked at every second) says true.
  template <typename GiveUp>
  CURLcode Perform(std::stop_token stop, const GiveUp& give_up) {
    curl_multi_add_handle(multi_, curl_);
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    {
      const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi_); });
      int running = 1;
      while (!stop.stop_requested()) {
        if (curl_multi_perform(multi_, &running) != CURLM_OK || running == 0 || give_up()) break;
        curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
      }
    }
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi_, &left); message != nullptr) {
      code = message->data.result;
    }
    curl_multi_remove_handle(multi_, curl_);  // an unfinished one loses its connection
    return code;
  }

  void Prepare(const HttpRequest& request, const std::string& token, long timeout_ms) {
    response = HttpResponse();
    on_bytes = nullptr;
    refused_size = false;
    error_[0] = '\0';
    Set(CURLOPT_URL, (base_ + request.path).c_str());
    Set(CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_slist_free_all(headers_);
    headers_ = nullptr;
    Header("Accept: application/json");
    Header("Expect:");
    if (!host_header_.empty()) Header("Host: " + host_header_);
    if (!token.empty()) Header("Authorization: Bearer " + token);
    if (request.body.empty()) {
      Set(CURLOPT_HTTPGET, 1L);
    } else {
      Header("Content-Type: " + request.content_type);
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      Set(CURLOPT_COPYPOSTFIELDS, request.body.c_str());
    }
    Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    Set(CURLOPT_HTTPHEADER, headers_);
  }

  // The code of the final answer so far, 0 before it came.
  int Code() const {
    long code = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }

  absl::Status Error(CURLcode code, const std::string& what) const {
    const std::string why = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
    if (refused_size) return base::ResourceExhausted("{}: the answer is larger than 1 GiB", what);
    long os_error = 0;
    curl_easy_getinfo(curl_, CURLINFO_OS_ERRNO, &os_error);
    if (code == CURLE_COULDNT_CONNECT && os_error == ECONNREFUSED) return ConnectionRefused(what);
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        return base::DeadlineExceeded("{}: {}", what, why);
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_ISSUER_ERROR:
        return base::FailedPrecondition("{}: TLS: {}", what, why);
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return base::InvalidArgument("{}: {}", what, why);
      default:
        return base::Unavailable("{}: {}", what, why);
    }
  }

  HttpResponse response;
  const std::function<bool(std::string_view)>* on_bytes = nullptr;  // for a 200, instead of the body
  bool refused_size = false;
  const uint64_t tls_generation;

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(curl_, option, value);
    MEDLEY_CHECK(code == CURLE_OK, curl_easy_strerror(code));
  }
  void Header(const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); }

  // 0: go on. What the kernel does not know it does not do; connections work without.
  static int OnSocket(void*, curl_socket_t socket, curlsocktype) {
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof(kKeepAliveProbes));
    ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs, sizeof(kUnacknowledgedMs));
    return CURL_SOCKOPT_OK;
  }

  void Setup(const ClientConfig& config, const Credentials::Snapshot& who) {
    base_ = config.server;
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_USERAGENT, config.user_agent.c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(config.connect_timeout.count()));
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
    Set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
    Set(CURLOPT_SOCKOPTFUNCTION, &Handle::OnSocket);
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    if (!config.proxy_url.empty()) {
      Set(CURLOPT_PROXY, config.proxy_url.c_str());
    } else if (IsLoopback(config.server)) {
      Set(CURLOPT_PROXY, "");
    }
    Set(CURLOPT_WRITEFUNCTION, &Handle::OnBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_HEADERFUNCTION, &Handle::OnHeader);
    Set(CURLOPT_HEADERDATA, this);
    SetupTls(config, who);
  }

  void SetupTls(const ClientConfig& config, const Credentials::Snapshot& who) {
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, config.insecure_skip_tls_verify ? 0L : 1L);
    Set(CURLOPT_SSL_VERIFYHOST, config.insecure_skip_tls_verify ? 0L : 2L);
    const auto blob = [&](CURLoption option, const std::string& text) {
      if (text.empty()) return;
      curl_blob value = Blob(text);
      Set(option, &value);
    };
    blob(CURLOPT_CAINFO_BLOB, who.ca);
    blob(CURLOPT_SSLCERT_BLOB, who.certificate);
    blob(CURLOPT_SSLKEY_BLOB, who.key);
    if (!config.tls_server_name.empty()) UseServerName(config);
  }

  // The URL bears the name to verify; the connection goes to the real host.
  void UseServerName(const ClientConfig& config) {
    const size_t begin = config.server.find("://") + 3;
    const size_t end = std::min(config.server.find('/', begin), config.server.size());
    host_header_ = config.server.substr(begin, end - begin);
    const size_t colon = host_header_.rfind(':');
    const bool has_port = colon != std::string::npos && host_header_.find(']', colon) == std::string::npos;
    const std::string port = has_port ? host_header_.substr(colon) : "";
    base_ = config.server.substr(0, begin) + config.tls_server_name + port + config.server.substr(end);
    connect_to_ = curl_slist_append(nullptr, ("::" + host_header_ + (has_port ? "" : ":")).c_str());
    Set(CURLOPT_CONNECT_TO, connect_to_);
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* self_pointer) {
    auto& self = *static_cast<Handle*>(self_pointer);
    const std::string_view bytes(data, size * count);
    if (self.on_bytes != nullptr && self.Code() == 200) {
      return (*self.on_bytes)(bytes) ? bytes.size() : 0;
    }
    if (self.response.body.size() + bytes.size() > kMaxBody) {
      self.refused_size = true;
      return 0;
    }
    self.response.body.append(bytes);
    return bytes.size();
  }

  static size_t OnHeader(char* data, size_t size, size_t count, void* self_pointer) {
    auto& self = *static_cast<Handle*>(self_pointer);
    const std::string_view line(data, size * count);
    constexpr std::string_view kName = "retry-after:";
    if (line.size() > kName.size() && curl_strnequal(data, kName.data(), kName.size()) != 0) {
      const size_t begin = line.find_first_not_of(' ', kName.size());
      int value = 0;
      if (begin != std::string_view::npos &&
          std::from_chars(line.data() + begin, line.data() + line.size(), value).ec == std::errc() && value >= 0) {
        self.response.retry_after = std::chrono::seconds(value);
      }
    }
    return line.size();
  }

  CURLM* const multi_;
  CURL* const curl_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string base_;
  std::string host_header_;
  char error_[CURL_ERROR_SIZE] = {};
};

CurlSession::CurlSession(const ClientConfig& config, base::Clock& clock)
    : config_(config), clock_(clock), credentials_(config, clock) {
  InitCurl();
}

CurlSession::~CurlSession() = default;

std::unique_ptr<CurlSession::Handle> CurlSession::Take(const Credentials::Snapshot& who) {
  std::vector<std::unique_ptr<Handle>> old;  // closed without the lock
  base::MutexLock lock(mutex_);
  while (!idle_.empty()) {
    std::unique_ptr<Handle> handle = std::move(idle_.back());
    idle_.pop_back();
    if (handle->tls_generation == who.tls_generation) return handle;
    old.push_back(std::move(handle));
  }
  return std::make_unique<Handle>(config_, who);
}

void CurlSession::Give(std::unique_ptr<Handle> handle) {
  base::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(handle));
}

template <typename Try>
absl::StatusOr<HttpResponse> CurlSession::WithCredentials(const Try& once) {
  const auto who = credentials_.Current();
  absl::StatusOr<HttpResponse> response = once(*who);
  const bool refused = response.ok() ? response->code == 401 : absl::IsFailedPrecondition(response.status());
  if (!refused || !credentials_.Renew(*who)) return response;
  return once(*credentials_.Current());
}

absl::StatusOr<HttpResponse> CurlSession::Exchange(const HttpRequest& request, const std::string& what,
                                                   std::stop_token stop) {
  return WithCredentials([&](const Credentials::Snapshot& who) { return ExchangeOnce(request, what, stop, who); });
}

absl::StatusOr<HttpResponse> CurlSession::ExchangeOnce(const HttpRequest& request, const std::string& what,
                                                       std::stop_token stop, const Credentials::Snapshot& who) {
  std::unique_ptr<Handle> handle = Take(who);
  handle->Prepare(request, who.token, static_cast<long>(config_.request_timeout.count()));
  const CURLcode code = handle->Perform(stop, [] { return false; });
  if (code == CURLE_ABORTED_BY_CALLBACK && stop.stop_requested()) {
    return base::Cancelled("{}: stopped", what);
  }
  if (code != CURLE_OK) return handle->Error(code, what);
  HttpResponse response = std::move(handle->response);
  response.code = handle->Code();
  Give(std::move(handle));
  return response;
}

absl::StatusOr<HttpResponse> CurlSession::Stream(const std::string& path, const std::string& what,
                                                 std::chrono::milliseconds timeout, std::stop_token stop,
                                                 const std::function<bool(std::string_view)>& on_bytes) {
  return WithCredentials(
      [&](const Credentials::Snapshot& who) { return StreamOnce(path, what, timeout, stop, on_bytes, who); });
}

absl::StatusOr<HttpResponse> CurlSession::StreamOnce(const std::string& path, const std::string& what,
                                                     std::chrono::milliseconds timeout, std::stop_token stop,
                                                     const std::function<bool(std::string_view)>& on_bytes,
                                                     const Credentials::Snapshot& who) {
  std::unique_ptr<Handle> handle = Take(who);
  bool ended = false;  // by on_bytes
  const std::function<bool(std::string_view)> sink = [&](std::string_view bytes) {
    ended = stop.stop_requested() || !on_bytes(bytes);
    return !ended;
  };
  handle->Prepare({.path = path}, who.token, static_cast<long>(timeout.count()));
  handle->on_bytes = &sink;
  const base::SteadyTime answer_by = clock_.Steady() + config_.request_timeout;
  bool silent = false;
  const CURLcode code =
      handle->Perform(stop, [&] { return silent = handle->Code() == 0 && clock_.Steady() >= answer_by; });
  HttpResponse response = std::move(handle->response);
  response.code = handle->Code();
  if (stop.stop_requested() || ended) {
    response.code = 200;
    return response;
  }
  if (silent) return base::DeadlineExceeded("{}: no answer", what);
  // A timeout after the 200 is our own end of a watch that the server should have ended.
  if (code == CURLE_OPERATION_TIMEDOUT && response.code == 200) return response;
  if (code != CURLE_OK) return response.code == 200 ? StreamCut(what) : handle->Error(code, what);
  Give(std::move(handle));
  return response;
}

}  // namespace medley::kube
