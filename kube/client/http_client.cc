#include "kube/client/http_client.h"

#include <atomic>

#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/url.h"
#include "kube/client/http_session.h"
#include "kube/client/watch_decoder.h"
#include "kube/errors.h"

namespace medley::kube {
namespace {

constexpr std::string_view kJson = "application/json";
// A watch ends by the server's own timeout; ours is only for a server that forgets it.
constexpr std::chrono::seconds kWatchGrace{30};

// "?a=b&c=d" of those that are not empty.
class Query {
 public:
  void Add(std::string_view name, std::string_view value) {
    if (!value.empty()) AddEmpty(name, value);
  }
  void AddEmpty(std::string_view name, std::string_view value) {
    text_ += text_.empty() ? "?" : "&";
    text_.append(name).append("=").append(base::UrlEncode(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Names become parts of a path: what would change its meaning is refused, as the API server does.
absl::Status CheckKey(const Resource& resource, const Key& key, const std::string& what) {
  for (const std::string* part : {&key.ns, &key.name}) {
    if (*part == "." || *part == ".." || part->find_first_of("/%?#") != std::string::npos) {
      return base::InvalidArgument("{}: '{}' cannot be a name", what, *part);
    }
  }
  if (key.name.empty()) return base::InvalidArgument("{}: the name is empty", what);
  if (resource.namespaced && key.ns.empty()) {
    return base::InvalidArgument("{}: the namespace is empty", what);
  }
  return absl::OkStatus();
}

std::string What(const char* verb, const Resource& resource, const Key& key, std::string_view subresource = "") {
  return fmt::format("{} {}{}{} '{}'", verb, resource.plural, subresource.empty() ? "" : "/", subresource,
                     key.ToString());
}

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return kJson;
}

absl::StatusOr<Object> AsObject(absl::StatusOr<Json> json) {
  if (!json.ok()) return json.status();
  return Object(*std::move(json));
}

// Items of a typed list bear no kind: the list's own tells it.
absl::StatusOr<ObjectList> AsList(Json json, const Resource& resource, const std::string& what) {
  Object view(std::move(json));
  const std::string kind = view.kind();
  if (kind != resource.kind + "List" && kind != "List") {
    return base::DataLoss("{}: the answer is a '{}', not a list of {}", what, kind, resource.kind);
  }
  ObjectList list;
  list.resource_version = view.String("/metadata/resourceVersion");
  list.continue_token = view.String("/metadata/continue");
  Json& body = view.mutable_json();
  const auto items = body.find("items");
  if (items == body.end() || items->is_null()) return list;
  if (!items->is_array()) return base::DataLoss("{}: items is no list", what);
  list.items.reserve(items->size());
  for (Json& item : *items) {
    if (!item.is_object()) return base::DataLoss("{}: an item is no object", what);
    if (!item.contains("kind")) item["kind"] = resource.kind;
    if (!item.contains("apiVersion")) item["apiVersion"] = resource.ApiVersion();
    list.items.emplace_back(std::move(item));
  }
  return list;
}

}  // namespace

class HttpClient::Transport {
 public:
  Transport(ClientConfig config, base::Clock& clock, uint64_t seed)
      : config_(std::move(config)), session_(config_, clock), clock_(clock), seed_(seed) {}

  // With retries. Any code but 2xx is an error. `stop` ends it, Shutdown its waits.
  absl::StatusOr<std::string> Send(const HttpRequest& request, const std::string& what,
                                   const std::stop_token& stop = {}) {
    base::Backoff backoff({.first = base::milliseconds(100), .max = base::seconds(5)}, seed_ + calls_.fetch_add(1));
    for (int retries = 0;; ++retries) {
      MEDLEY_ASSIGN_OR_RETURN(HttpResponse response, session_.Exchange(request, what, stop));
      if (response.code >= 200 && response.code < 300) return std::move(response.body);
      const absl::Status error = ErrorFromHttp(response.code, response.body, what, response.retry_after);
      const bool may_retry = response.code == 429 || response.code >= 500;
      if (!may_retry || !response.retry_after || retries >= config_.max_retries) return error;
      const base::nanoseconds asked = std::min(*response.retry_after, config_.max_retry_after);
      if (!Wait(std::max(asked, backoff.Next()), stop)) return error;
    }
  }

  const ClientConfig config_;
  HttpSession session_;
  base::Clock& clock_;
  const uint64_t seed_;
  std::atomic<uint64_t> calls_{0};
  std::stop_source shutdown_;

 private:
  // False when it ended early.
  bool Wait(base::nanoseconds time, const std::stop_token& stop) {
    std::stop_source either;
    const std::stop_callback by_caller(stop, [&] { either.request_stop(); });
    const std::stop_callback by_shutdown(shutdown_.get_token(), [&] { either.request_stop(); });
    return clock_.SleepFor(time, either.get_token());
  }
};

HttpClient::HttpClient(ClientConfig config, base::Clock& clock, uint64_t seed)
    : transport_(std::make_unique<Transport>(std::move(config), clock, seed)) {}

HttpClient::~HttpClient() = default;

const ClientConfig& HttpClient::config() const { return transport_->config_; }

void HttpClient::Shutdown() { transport_->shutdown_.request_stop(); }

absl::StatusOr<Json> HttpClient::Call(std::string_view method, const std::string& path, const std::string& body,
                                      std::string_view content_type, const std::string& what,
                                      const std::stop_token& stop) {
  const HttpRequest request{std::string(method), path, body, std::string(content_type)};
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, transport_->Send(request, what, stop));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return base::DataLoss("{}: the answer is no JSON object", what);
  return json;
}

absl::StatusOr<Object> HttpClient::Get(const Resource& resource, const Key& key) {
  const std::string what = What("get", resource, key);
  MEDLEY_RETURN_IF_ERROR(CheckKey(resource, key, what));
  return AsObject(Call("GET", resource.Path(key.ns, key.name), "", "", what));
}

absl::StatusOr<ObjectList> HttpClient::List(const Resource& resource, const ListOptions& options) {
  const std::string what = fmt::format("list {} in '{}'", resource.plural, options.ns);
  Query query;
  query.Add("labelSelector", options.label_selector);
  query.Add("fieldSelector", options.field_selector);
  if (options.resource_version) query.Add("resourceVersion", *options.resource_version);
  if (options.limit > 0) query.Add("limit", std::to_string(options.limit));
  query.Add("continue", options.continue_token);
  MEDLEY_ASSIGN_OR_RETURN(Json json, Call("GET", resource.Path(options.ns) + query.text(), "", "", what, options.stop));
  return AsList(std::move(json), resource, what);
}

absl::StatusOr<Object> HttpClient::Create(const Resource& resource, const Object& object) {
  const Key key = object.key();
  return AsObject(Call("POST", resource.Path(key.ns) + "?fieldManager=medley", Dump(object.json()), kJson,
                       What("create", resource, key)));
}

absl::StatusOr<Object> HttpClient::Update(const Resource& resource, const Object& object,
                                          std::string_view subresource) {
  const Key key = object.key();
  const std::string what = What("update", resource, key, subresource);
  MEDLEY_RETURN_IF_ERROR(CheckKey(resource, key, what));
  return AsObject(Call("PUT", resource.Path(key.ns, key.name, subresource) + "?fieldManager=medley",
                       Dump(object.json()), kJson, what));
}

absl::StatusOr<Object> HttpClient::Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                                         const PatchOptions& options, std::string_view subresource) {
  const std::string what = What("patch", resource, key, subresource);
  MEDLEY_RETURN_IF_ERROR(CheckKey(resource, key, what));
  Query query;
  query.Add("fieldManager", options.field_manager);
  if (type == PatchType::kApply && options.force) query.Add("force", "true");
  return AsObject(
      Call("PATCH", resource.Path(key.ns, key.name, subresource) + query.text(), Dump(patch), ContentType(type), what));
}

absl::Status HttpClient::Delete(const Resource& resource, const Key& key, const DeleteOptions& options) {
  const std::string what = What("delete", resource, key);
  MEDLEY_RETURN_IF_ERROR(CheckKey(resource, key, what));
  Json body = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.uid) body["preconditions"]["uid"] = *options.uid;
  if (options.resource_version) body["preconditions"]["resourceVersion"] = *options.resource_version;
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.propagation_policy.empty()) body["propagationPolicy"] = options.propagation_policy;
  return transport_->Send({"DELETE", resource.Path(key.ns, key.name), Dump(body), std::string(kJson)}, what).status();
}

absl::Status HttpClient::Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                               const std::function<bool(WatchEvent)>& on_event) {
  const std::string what = fmt::format("watch {} in '{}'", resource.plural, options.ns);
  Query query;
  query.Add("watch", "true");
  query.Add("labelSelector", options.label_selector);
  query.Add("fieldSelector", options.field_selector);
  query.Add("resourceVersion", options.resource_version);
  if (options.allow_bookmarks) query.Add("allowWatchBookmarks", "true");
  if (options.timeout_seconds > 0) query.Add("timeoutSeconds", std::to_string(options.timeout_seconds));
  if (options.send_initial_events) {
    query.Add("sendInitialEvents", "true");
    query.Add("resourceVersionMatch", "NotOlderThan");
  }
  std::chrono::milliseconds timeout{0};
  if (options.timeout_seconds > 0) timeout = std::chrono::seconds(options.timeout_seconds) + kWatchGrace;

  WatchDecoder decoder;
  absl::Status decoded;
  auto response = transport_->session_.Stream(resource.Path(options.ns) + query.text(), what, timeout, stop,
                                              [&](std::string_view bytes) {
                                                decoded = decoder.Feed(bytes, on_event);
                                                return decoded.ok() && !decoder.stopped();
                                              });
  if (stop.stop_requested() || decoder.stopped()) return absl::OkStatus();
  if (!decoded.ok()) return base::Annotate(decoded, what);
  if (!response.ok()) return response.status();
  if (response->code != 200) {
    return ErrorFromHttp(response->code, response->body, what, response->retry_after);
  }
  return decoder.partial() ? StreamCut(what) : absl::OkStatus();
}

absl::StatusOr<std::string> HttpClient::GetRaw(std::string_view path_and_query) {
  if (!path_and_query.starts_with('/')) {
    return base::InvalidArgument("get '{}': a path begins with /", path_and_query);
  }
  return transport_->Send({"GET", std::string(path_and_query), "", ""}, fmt::format("get '{}'", path_and_query));
}

absl::Status HttpClient::StreamRaw(std::string_view path_and_query, std::stop_token stop,
                                   const std::function<bool(std::string_view)>& on_bytes) {
  const std::string what = fmt::format("get '{}'", path_and_query);
  if (!path_and_query.starts_with('/')) return base::InvalidArgument("{}: a path begins with /", what);
  MEDLEY_ASSIGN_OR_RETURN(
      const HttpResponse response,
      transport_->session_.Stream(std::string(path_and_query), what, std::chrono::milliseconds(0), stop, on_bytes));
  if (response.code == 200) return absl::OkStatus();
  return ErrorFromHttp(response.code, response.body, what, response.retry_after);
}

}  // namespace medley::kube
