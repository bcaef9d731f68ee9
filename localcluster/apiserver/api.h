// Routes a request to its handler. Thread-safe; everything is borrowed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/document/parse.h"
#include "common/http_server/message.h"
#include "localcluster/apiserver/faults.h"
#include "localcluster/apiserver/log_access.h"
#include "localcluster/apiserver/rest.h"

namespace medley::localcluster {
class LogReader;
struct RequestSeen;
}  // namespace medley::localcluster

namespace medley::localcluster::apiserver {

using http_server::BodySink;
using http_server::HttpRequest;
using http_server::HttpResponse;

// Limits for parsing a body. Kubernetes' own types have fewer than 100 nested levels.
inline constexpr document::Limits kBodyLimits{.depth = 200};

// The parts of a resource's URL.
struct Route {
  InfoPtr info;
  std::string ns;    // empty: all namespaces, or cluster scope
  std::string name;  // empty: the collection
  std::string subresource;
  std::string rest;  // of proxy: the path behind it, encoded
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection
  kube::Key key() const { return {info->resource.namespaced ? ns : "", name}; }
};

class Api {
 public:
  struct Options {
    std::map<std::string, std::string> tokens;
    bool authenticate = true;  // require a token or a client certificate
    bool local_only = false;   // refuse requests of other sites' web pages (http_server/local_caller.h)
    std::function<void(const RequestSeen&)> on_request;
    std::function<std::vector<std::string>(const kube::Object& object)> warn_of_delete;
    base::nanoseconds bookmark_interval = base::seconds(60);
    std::string address;
  };
  Api(Options options, Rest& rest, FaultScript& faults);

  HttpResponse Handle(const HttpRequest& request);
  void SetLogReader(LogReader* reader);
  void SetTokens(std::map<std::string, std::string> tokens);

 private:
  absl::StatusOr<HttpResponse> Dispatch(const HttpRequest& request);
  absl::StatusOr<std::optional<HttpResponse>> Documents(const HttpRequest& request);
  absl::StatusOr<Route> Parse(const HttpRequest& request) const;
  absl::StatusOr<HttpResponse> Serve(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> ServeWell(const Route& route, const HttpRequest& request, std::optional<Fault> fault);
  absl::StatusOr<HttpResponse> ServeObject(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> List(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Watch(const Route& route, const HttpRequest& request, std::optional<Fault> fault);
  absl::StatusOr<HttpResponse> Create(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Update(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Patch(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Delete(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> DeleteCollection(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Scale(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Bind(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Evict(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Log(const Route& route, const HttpRequest& request);
  absl::StatusOr<HttpResponse> Proxy(const Route& route);
  absl::Status Authenticate(const HttpRequest& request);

  const Options options_;
  Rest& rest_;
  FaultScript& faults_;
  base::Mutex tokens_mutex_;
  std::map<std::string, std::string> tokens_ ABSL_GUARDED_BY(tokens_mutex_);
  LogAccess logs_;
};

// Functions that the handlers share (api_common.cc).

// Decodes the body, JSON or YAML by its Content-Type. `options` decide whether duplicate fields are errors or warnings.
absl::StatusOr<kube::Json> DecodeBody(const Route& route, const HttpRequest& request, const WriteOptions& options,
                                      const kube::Definitions& definitions);
absl::StatusOr<WriteOptions> ReadWriteOptions(const Route& route, const HttpRequest& request);
// The object in the form that the request wants: as it is, or as a Table.
HttpResponse ObjectResponse(const Route& route, const HttpRequest& request, const kube::Json& object,
                            base::WallTime now, int code = 200);
HttpResponse JsonResponse(const kube::Json& body, int code = 200);
HttpResponse ErrorAnswer(const absl::Status& status);
void AddWarnings(const std::vector<std::string>& warnings, HttpResponse* response);
// The object with the apiVersion of the requested version.
kube::Json InVersion(const ResourceInfo& info, const kube::Json& object);
bool WantsTable(const HttpRequest& request);
bool MethodIsWatch(const HttpRequest& request);

}  // namespace medley::localcluster::apiserver
