#include "kube/leader/fenced_client.h"

#include "common/base/status.h"

namespace medley::kube {

absl::StatusOr<Object> FencedClient::Get(const Resource& resource, const Key& key) {
  return client_.Get(resource, key);
}

absl::StatusOr<ObjectList> FencedClient::List(const Resource& resource, const ListOptions& options) {
  return client_.List(resource, options);
}

absl::StatusOr<Object> FencedClient::Create(const Resource& resource, const Object& object) {
  MEDLEY_RETURN_IF_ERROR(guard_());
  return client_.Create(resource, object);
}

absl::StatusOr<Object> FencedClient::Update(const Resource& resource, const Object& object,
                                            std::string_view subresource) {
  MEDLEY_RETURN_IF_ERROR(guard_());
  return client_.Update(resource, object, subresource);
}

absl::StatusOr<Object> FencedClient::Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                                           const PatchOptions& options, std::string_view subresource) {
  MEDLEY_RETURN_IF_ERROR(guard_());
  return client_.Patch(resource, key, type, patch, options, subresource);
}

absl::Status FencedClient::Delete(const Resource& resource, const Key& key, const DeleteOptions& options) {
  MEDLEY_RETURN_IF_ERROR(guard_());
  return client_.Delete(resource, key, options);
}

absl::Status FencedClient::Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                                 const std::function<bool(WatchEvent)>& on_event) {
  return client_.Watch(resource, options, std::move(stop), on_event);
}

absl::StatusOr<std::string> FencedClient::GetRaw(std::string_view path_and_query) {
  return client_.GetRaw(path_and_query);
}

absl::Status FencedClient::StreamRaw(std::string_view path_and_query, std::stop_token stop,
                                     const std::function<bool(std::string_view)>& on_bytes) {
  return client_.StreamRaw(path_and_query, std::move(stop), on_bytes);
}

}  // namespace medley::kube
