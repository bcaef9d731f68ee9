#include "common/kube/client/curl_session.h"

#include <curl/curl.h>

#include <cerrno>
#include <charconv>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/kube/errors.h"

namespace medley::kube {
namespace {

constexpr size_t kMaxBody = size_t{1} << 30;
constexpr size_t kMaxIdle = 16;
constexpr base::nanoseconds kTokenAge = base::seconds(60);
constexpr int kPollMs = 1000;

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

// One easy handle with its connection, and what its callbacks fill.
class CurlSession::Handle {
 public:
  explicit Handle(const ClientConfig& config) : curl_(curl_easy_init()) {
    MEDLEY_CHECK(curl_ != nullptr, "curl_easy_init failed");
    Setup(config);
  }
  ~Handle() {
    curl_easy_cleanup(curl_);
    curl_slist_free_all(headers_);
    curl_slist_free_all(connect_to_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURL* curl() { return curl_; }

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
      case CURLE_OPERATION_TIMEDOUT: return base::DeadlineExceeded("{}: {}", what, why);
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_ISSUER_ERROR:
        return base::FailedPrecondition("{}: TLS: {}", what, why);
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL: return base::InvalidArgument("{}: {}", what, why);
      default: return base::Unavailable("{}: {}", what, why);
    }
  }

  HttpResponse response;
  const std::function<bool(std::string_view)>* on_bytes = nullptr;  // for a 200, instead of the body
  bool refused_size = false;

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(curl_, option, value);
    MEDLEY_CHECK(code == CURLE_OK, curl_easy_strerror(code));
  }
  void Header(const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); }

  void Setup(const ClientConfig& config) {
    base_ = config.server;
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_ERRORBUFFER, error_);
    Set(CURLOPT_USERAGENT, config.user_agent.c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(config.connect_timeout.count()));
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_TCP_KEEPIDLE, 30L);
    Set(CURLOPT_TCP_KEEPINTVL, 15L);
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
    SetupTls(config);
  }

  void SetupTls(const ClientConfig& config) {
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, config.insecure_skip_tls_verify ? 0L : 1L);
    Set(CURLOPT_SSL_VERIFYHOST, config.insecure_skip_tls_verify ? 0L : 2L);
    const auto blob = [&](CURLoption option, const std::string& text) {
      if (text.empty()) return;
      curl_blob value = Blob(text);
      Set(option, &value);
    };
    blob(CURLOPT_CAINFO_BLOB, config.ca_data);
    blob(CURLOPT_SSLCERT_BLOB, config.client_certificate_data);
    blob(CURLOPT_SSLKEY_BLOB, config.client_key_data);
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
          std::from_chars(line.data() + begin, line.data() + line.size(), value).ec == std::errc() &&
          value >= 0) {
        self.response.retry_after = std::chrono::seconds(value);
      }
    }
    return line.size();
  }

  CURL* curl_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string base_;
  std::string host_header_;
  char error_[CURL_ERROR_SIZE] = {};
};

CurlSession::CurlSession(const ClientConfig& config, base::Clock& clock)
    : config_(config), clock_(clock), token_(config.token) {
  InitCurl();
}

CurlSession::~CurlSession() = default;

std::unique_ptr<CurlSession::Handle> CurlSession::Take() {
  base::MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<Handle>(config_);
  std::unique_ptr<Handle> handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void CurlSession::Give(std::unique_ptr<Handle> handle) {
  base::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(handle));
}

bool CurlSession::AskForToken() {
  auto text = config_.token_source();
  if (!text.ok()) {
    log::Warn("ask for a token", {{"error", base::ToString(text.status())}});
    return false;
  }
  base::MutexLock lock(mutex_);
  if (*text == token_) return false;
  token_ = *std::move(text);
  return true;
}

bool CurlSession::RefreshToken() {
  if (config_.token_source) return AskForToken();
  if (config_.token_file.empty()) return false;
  auto text = base::ReadFile(config_.token_file, 1 << 20);
  base::MutexLock lock(mutex_);
  token_read_ = clock_.Steady();
  if (!text.ok()) {
    log::Warn("read token file", {{"error", base::ToString(text.status())}});
    return false;
  }
  text->erase(text->find_last_not_of(" \t\r\n") + 1);
  if (text->find_first_of("\r\n") != std::string::npos || *text == token_) return false;
  token_ = *std::move(text);
  return true;
}

std::string CurlSession::Token() {
  bool old = false;
  {
    base::MutexLock lock(mutex_);
    old = !config_.token_file.empty() && (!token_read_ || clock_.Steady() - *token_read_ >= kTokenAge);
  }
  if (old) RefreshToken();
  base::MutexLock lock(mutex_);
  return token_;
}

absl::StatusOr<HttpResponse> CurlSession::Exchange(const HttpRequest& request,
                                                   const std::string& what) {
  std::unique_ptr<Handle> handle = Take();
  handle->Prepare(request, Token(), static_cast<long>(config_.request_timeout.count()));
  const CURLcode code = curl_easy_perform(handle->curl());
  if (code != CURLE_OK) return handle->Error(code, what);
  HttpResponse response = std::move(handle->response);
  response.code = handle->Code();
  Give(std::move(handle));
  return response;
}

absl::StatusOr<HttpResponse> CurlSession::Stream(
    const std::string& path, const std::string& what, std::chrono::milliseconds timeout,
    std::stop_token stop, const std::function<bool(std::string_view)>& on_bytes) {
  Handle handle(config_);
  bool ended = false;  // by on_bytes
  const std::function<bool(std::string_view)> sink = [&](std::string_view bytes) {
    ended = stop.stop_requested() || !on_bytes(bytes);
    return !ended;
  };
  handle.Prepare({.path = path}, Token(), static_cast<long>(timeout.count()));
  handle.on_bytes = &sink;
  const std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi(curl_multi_init(), &curl_multi_cleanup);
  MEDLEY_CHECK(multi != nullptr, "curl_multi_init failed");
  curl_multi_add_handle(multi.get(), handle.curl());
  const base::SteadyTime answer_by = clock_.Steady() + config_.request_timeout;
  bool silent = false;
  int running = 1;
  {
    const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
    while (!stop.stop_requested()) {
      if (curl_multi_perform(multi.get(), &running) != CURLM_OK || running == 0) break;
      silent = handle.Code() == 0 && clock_.Steady() >= answer_by;
      if (silent) break;
      curl_multi_poll(multi.get(), nullptr, 0, kPollMs, nullptr);
    }
  }
  CURLcode code = CURLE_OK;
  int left = 0;
  if (const CURLMsg* message = curl_multi_info_read(multi.get(), &left); message != nullptr) {
    code = message->data.result;
  }
  HttpResponse response = std::move(handle.response);
  response.code = handle.Code();
  absl::Status error = absl::OkStatus();
  if (stop.stop_requested() || ended) {
    response.code = 200;
  } else if (silent) {
    error = base::DeadlineExceeded("{}: no answer", what);
  } else if (code == CURLE_OPERATION_TIMEDOUT && response.code == 200) {
    // Our own end of a watch that the server should have ended.
  } else if (code != CURLE_OK) {
    error = response.code == 200 ? StreamCut(what) : handle.Error(code, what);
  }
  curl_multi_remove_handle(multi.get(), handle.curl());
  if (!error.ok()) return error;
  return response;
}

}  // namespace medley::kube
