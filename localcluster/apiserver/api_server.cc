#include "localcluster/apiserver/api_server.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>

#include "common/base/file.h"
#include "common/base/host_port.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/secrets.h"
#include "common/base/status.h"
#include "common/http_server/server.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/builtin_schemas.h"
#include "localcluster/apiserver/garbage_collector.h"
#include "localcluster/apiserver/self_signed.h"

namespace medley::localcluster {
namespace {

ApiServerOptions WithToken(ApiServerOptions options) {
  const bool open = options.allow_anonymous || !options.tokens.empty() || !options.client_ca.empty();
  if (!open) options.tokens = {{base::RandomToken(), "medley"}};
  return options;
}

// A Status object, as kube-apiserver's own filters answer.
http_server::HttpResponse Refusal(int code, const std::string& message) {
  const char* const reason = code == 400   ? "BadRequest"
                             : code == 413 ? "RequestEntityTooLarge"
                             : code == 431 ? "RequestHeaderFieldsTooLarge"
                             : code == 503 ? "ServiceUnavailable"
                                           : "InternalError";
  const absl::Status status = apiserver::ApiError(code, reason, message);
  return {.code = code, .body = kube::Dump(apiserver::StatusObject(status))};
}

}  // namespace

class ApiServer::Core {
 public:
  Core(base::Clock& clock, ApiServerOptions options)
      : options_(WithToken(std::move(options))),
        self_signed_(options_.self_signed ? apiserver::MakeSelfSigned() : apiserver::SelfSigned()),
        registry_(definitions_),
        store_(static_cast<size_t>(std::max(1, options_.event_window)),
               static_cast<size_t>(std::max(1, options_.watch_buffer))),
        rest_(registry_, store_, clock, options_.random ? options_.random : base::SystemSeed),
        collector_(rest_),
        api_({.tokens = options_.tokens,
              .authenticate = !options_.allow_anonymous,
              .local_only = base::IsLoopback(options_.address),
              .on_request = options_.on_request,
              .warn_of_delete = options_.warn_of_delete,
              .bookmark_interval = options_.bookmark_interval,
              .address = options_.address},
             rest_, faults_),
        server_({.address = options_.address,
                 .port = options_.port,
                 .max_connections = options_.max_connections,
                 .max_body = options_.max_body,
                 .certificate = options_.tls_certificate,
                 .key = options_.tls_key,
                 .client_ca = options_.client_ca,
                 .certificate_pem = self_signed_.ok() ? self_signed_->certificate : "",
                 .key_pem = self_signed_.ok() ? self_signed_->key : "",
                 .refuse = &Refusal},
                [this](const http_server::HttpRequest& request) { return api_.Handle(request); }) {
    store_.SetObserver([this](const std::string&, const apiserver::Change& change) { collector_.Notice(change); });
  }

  absl::Status Start() {
    MEDLEY_RETURN_IF_ERROR(self_signed_.status());
    MEDLEY_RETURN_IF_ERROR(CreateNamespaces());
    for (const std::filesystem::path& path : options_.crd_paths) MEDLEY_RETURN_IF_ERROR(Load(path));
    MEDLEY_RETURN_IF_ERROR(server_.Start());
    collector_.Start();
    return absl::OkStatus();
  }

  void Stop() {
    server_.Stop();
    collector_.Stop();
  }

  std::string url() const {
    const std::string host =
        options_.address.find(':') == std::string::npos ? options_.address : "[" + options_.address + "]";
    return fmt::format("{}://{}:{}", server_.tls() ? "https" : "http", host, server_.port());
  }

  absl::Status WriteKubeconfig(const std::filesystem::path& path) const {
    kube::Json cluster = {{"server", url()}};
    if (!ca().empty()) {
      cluster["certificate-authority-data"] = absl::Base64Escape(ca());
    } else if (server_.tls()) {
      cluster["certificate-authority"] = std::filesystem::absolute(options_.tls_certificate).string();
    }
    kube::Json user = kube::Json::object();
    if (!token().empty()) user["token"] = token();
    const kube::Json config = {
        {"apiVersion", "v1"},
        {"kind", "Config"},
        {"current-context", "medley"},
        {"clusters", kube::Json::array({{{"name", "medley"}, {"cluster", cluster}}})},
        {"users", kube::Json::array({{{"name", "medley"}, {"user", user}}})},
        {"contexts",
         kube::Json::array({{{"name", "medley"},
                             {"context", {{"cluster", "medley"}, {"user", "medley"}, {"namespace", "default"}}}}})}};
    return base::WriteSecretFile(path, config.dump(2) + "\n");  // JSON is YAML
  }

  absl::Status Restore(const kube::Object& object) {
    kube::Json json = object.json();
    if (json.is_object() && json.contains("metadata") && json["metadata"].is_object()) {
      for (const char* name : {"resourceVersion", "managedFields"}) json["metadata"].erase(name);
    }
    return CreateObject(std::move(json), true);
  }

  std::string ca() const { return self_signed_.ok() ? self_signed_->certificate : ""; }
  std::string token() const { return options_.tokens.empty() ? "" : options_.tokens.begin()->first; }
  int port() const { return server_.port(); }
  void SetLogReader(LogReader* reader) { api_.SetLogReader(reader); }
  void SetTokens(std::map<std::string, std::string> tokens) { api_.SetTokens(std::move(tokens)); }
  apiserver::FaultScript& faults() { return faults_; }
  http_server::HttpServer& server() { return server_; }
  const http_server::HttpServer& server() const { return server_; }

 private:
  absl::Status CreateNamespaces() {
    for (const char* name : {"default", "kube-system"}) {
      MEDLEY_RETURN_IF_ERROR(
          CreateObject({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}}));
      MEDLEY_RETURN_IF_ERROR(CreateObject({{"apiVersion", "v1"},
                                           {"kind", "ServiceAccount"},
                                           {"metadata", {{"name", "default"}, {"namespace", name}}}}));
    }
    return absl::OkStatus();
  }

  absl::Status Load(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        const auto extension = at->path().extension();
        if (extension == ".yaml" || extension == ".yml" || extension == ".json") files.push_back(at->path());
      }
      std::sort(files.begin(), files.end());
    } else {
      files.push_back(path);
    }
    for (const std::filesystem::path& file : files) {
      MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, options_.max_body));
      const absl::Status status = LoadText(text);
      if (!status.ok()) {
        return base::InvalidArgument("{}: {}", file.string(), base::Message(status));
      }
    }
    return absl::OkStatus();
  }

  absl::Status LoadText(const std::string& text) {
    MEDLEY_ASSIGN_OR_RETURN(std::vector<kube::Json> documents, document::ParseYamlStream(text, apiserver::kBodyLimits));
    for (kube::Json& document : documents) MEDLEY_RETURN_IF_ERROR(CreateObject(std::move(document)));
    return absl::OkStatus();
  }

  absl::Status CreateObject(kube::Json object, bool restore = false) {
    if (!object.is_object() || !object.contains("metadata") || !object["metadata"].is_object() ||
        !object.contains("kind") || !object["kind"].is_string() || !object.contains("apiVersion") ||
        !object["apiVersion"].is_string()) {
      return base::InvalidArgument("an object needs apiVersion, kind and metadata");
    }
    const std::string api = object["apiVersion"].get<std::string>();
    const size_t slash = api.find('/');
    const auto info =
        registry_.FindKind(slash == std::string::npos ? "" : api.substr(0, slash),
                           slash == std::string::npos ? api : api.substr(slash + 1), object["kind"].get<std::string>());
    if (info == nullptr) {
      return base::InvalidArgument("no matches for kind \"{}\" in version \"{}\"", object["kind"].get<std::string>(),
                                   api);
    }
    std::string ns;
    if (info->resource.namespaced) {
      const kube::Json& given = object["metadata"]["namespace"];
      ns = given.is_string() ? given.get<std::string>() : "default";
      object["metadata"]["namespace"] = ns;
    }
    apiserver::WriteOptions options;
    options.manager = "medley-embedded";
    options.validation = apiserver::FieldValidation::kStrict;
    options.restore = restore;
    return rest_.Create(*info, ns, std::move(object), options).status();
  }

  const ApiServerOptions options_;
  const absl::StatusOr<apiserver::SelfSigned> self_signed_;
  const kube::Definitions definitions_ = apiserver::BuiltinDefinitions();
  apiserver::Registry registry_;
  apiserver::Store store_;
  apiserver::Rest rest_;
  apiserver::GarbageCollector collector_;
  apiserver::FaultScript faults_;
  apiserver::Api api_;
  http_server::HttpServer server_;
};

ApiServer::ApiServer(base::Clock& clock, ApiServerOptions options)
    : core_(std::make_unique<Core>(clock, std::move(options))) {}
ApiServer::~ApiServer() { Stop(); }
absl::Status ApiServer::Start() { return core_->Start(); }
void ApiServer::Stop() { core_->Stop(); }
absl::Status ApiServer::Restore(const kube::Object& object) { return core_->Restore(object); }
int ApiServer::port() const { return core_->port(); }
std::string ApiServer::url() const { return core_->url(); }
std::string ApiServer::ca() const { return core_->ca(); }
std::string ApiServer::token() const { return core_->token(); }
absl::Status ApiServer::WriteKubeconfig(const std::filesystem::path& path) const {
  return core_->WriteKubeconfig(path);
}
void ApiServer::SetLogReader(LogReader* reader) { core_->SetLogReader(reader); }
void ApiServer::SetTokens(std::map<std::string, std::string> tokens) { core_->SetTokens(std::move(tokens)); }
apiserver::FaultScript& ApiServer::faults() { return core_->faults(); }
absl::Status ApiServer::SetListening(bool listening) { return core_->server().SetListening(listening); }
int64_t ApiServer::connections() const { return core_->server().connections(); }

}  // namespace medley::localcluster
