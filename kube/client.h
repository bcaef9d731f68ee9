// The interface of a client of the Kubernetes API. client/http_client.h implements it over HTTP.
//
// Thread-safe. The request timeout bounds each attempt, and the number of attempts is bounded. A Watch ends with its
// stop token or after timeout_seconds, a StreamRaw with its stop token. Errors carry the API's own Status: see
// kube/errors.h.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::kube {

struct ListOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::optional<std::string> resource_version;  // nullopt: the newest; "0": any that the server has cached
  int limit = 0;                                // most objects per page; 0: no limit
  std::string continue_token;
  std::stop_token stop;  // ends the call, even while it waits to retry: Cancelled or its last error
};

struct ObjectList {
  std::vector<Object> items;
  std::string resource_version;
  std::string continue_token;
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  int timeout_seconds = 0;  // 0: the server's default
  bool allow_bookmarks = true;
  bool send_initial_events = false;  // WatchList
};

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError, kUnknown };
  Type type = Type::kUnknown;
  Object object;  // for kError: the API's Status object
};

enum class PatchType { kMerge, kJson, kStrategicMerge, kApply };

struct PatchOptions {
  std::string field_manager = "medley";
  bool force = false;  // server-side apply: take over conflicting fields
};

struct DeleteOptions {
  std::optional<std::string> uid;               // precondition
  std::optional<std::string> resource_version;  // precondition
  std::optional<int> grace_period_seconds;
  std::string propagation_policy;  // "", Background, Foreground, Orphan
};

class Client {
 public:
  virtual ~Client() = default;

  virtual absl::StatusOr<Object> Get(const Resource& resource, const Key& key) = 0;
  virtual absl::StatusOr<ObjectList> List(const Resource& resource, const ListOptions& options) = 0;
  virtual absl::StatusOr<Object> Create(const Resource& resource, const Object& object) = 0;
  // Replaces the object. If it has a resourceVersion, that is a precondition. `subresource`: "", "status" or "scale".
  virtual absl::StatusOr<Object> Update(const Resource& resource, const Object& object,
                                        std::string_view subresource = "") = 0;
  virtual absl::StatusOr<Object> Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                                       const PatchOptions& options = {}, std::string_view subresource = "") = 0;
  // A missing object is an error. Callers for whom that is success check IsNotFound.
  virtual absl::Status Delete(const Resource& resource, const Key& key, const DeleteOptions& options = {}) = 0;
  // Calls `on_event` on the calling thread for each event, in order, until the stream ends. Returns OK if the server
  // closed it cleanly, `stop` was requested or `on_event` returned false.
  virtual absl::Status Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                             const std::function<bool(WatchEvent)>& on_event) = 0;
  // Returns the body of a GET of any path (logs, /version, /readyz).
  virtual absl::StatusOr<std::string> GetRaw(std::string_view path_and_query) = 0;
  // GETs any path and passes the body on in pieces as they arrive, on the calling thread (for logs that are followed).
  // Returns OK if the server closed the stream, `stop` was requested or `on_bytes` returned false, and StreamCut if the
  // connection broke in the middle.
  virtual absl::Status StreamRaw(std::string_view path_and_query, std::stop_token stop,
                                 const std::function<bool(std::string_view)>& on_bytes) = 0;
};

}  // namespace medley::kube
