// What a client of the Kubernetes API can do. client/http_client.h is the real one.
//
// Thread-safe. Every try is bounded by the client's request timeout, and the number of tries is; a Watch ends
// with its stop token or its timeout_seconds, StreamRaw with its stop token. Errors carry the API's own
// Status: see kube/errors.h.
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
  std::optional<std::string> resource_version;
  int limit = 0;
  std::string continue_token;
  std::stop_token stop;  // ends the call, also its waits between tries: Cancelled, or its last error
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
  // Replaces; the object's resourceVersion, when set, is a precondition. `subresource`: "", "status", "scale".
  virtual absl::StatusOr<Object> Update(const Resource& resource, const Object& object,
                                        std::string_view subresource = "") = 0;
  virtual absl::StatusOr<Object> Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                                       const PatchOptions& options = {}, std::string_view subresource = "") = 0;
  // NotFound is an error here; callers for whom "gone" is success check IsNotFound.
  virtual absl::Status Delete(const Resource& resource, const Key& key, const DeleteOptions& options = {}) = 0;
  // Calls `on_event` for each event, in order, from the calling thread, until the stream ends. OK: the
  // server closed it cleanly or `stop` was requested. `on_event` returning false ends the watch.
  virtual absl::Status Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                             const std::function<bool(WatchEvent)>& on_event) = 0;
  // The body of a GET on any path (logs, /version, /readyz).
  virtual absl::StatusOr<std::string> GetRaw(std::string_view path_and_query) = 0;
  // The same in pieces, as they come (logs that are followed), from the calling thread. Ends like Watch: OK when the
  // server closed it, `stop` was requested or `on_bytes` said false; StreamCut when it broke in the middle.
  virtual absl::Status StreamRaw(std::string_view path_and_query, std::stop_token stop,
                                 const std::function<bool(std::string_view)>& on_bytes) = 0;
};

}  // namespace medley::kube
