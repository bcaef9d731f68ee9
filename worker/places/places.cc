#include "worker/places/places.h"

#include <charconv>
#include <utility>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/object_store/settings.h"

namespace medley::worker {
namespace {

using object_store::IsRemote;

constexpr char kCacheBytes[] = "MEDLEY_CACHE_BYTES";

absl::StatusOr<int64_t> CacheBytes(const object_store::GetVariable& get) {
  const std::string text = get(kCacheBytes).value_or("");
  int64_t bytes = 0;
  if (text.empty()) return bytes;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes <= 0) {
    return base::InvalidArgument("{}: '{}' is not a number of bytes above 0", kCacheBytes, text);
  }
  return bytes;
}

bool AnyRemote(const model::SourceSpec& source) {
  for (const auto& [name, uri] : source.files) {
    if (IsRemote(uri)) return true;
  }
  return IsRemote(source.uri) || IsRemote(source.labels);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Places>> Places::Make(const object_store::GetVariable& get, Options options,
                                                     base::Clock& clock) {
  MEDLEY_ASSIGN_OR_RETURN(object_store::Settings settings, object_store::ReadSettings(object_store::WithKeyFiles(get)));
  if (options.cache_bytes == 0) {
    MEDLEY_ASSIGN_OR_RETURN(options.cache_bytes, CacheBytes(get));
  }
  auto store = std::make_unique<object_store::ObjectStore>(std::move(settings), clock, base::SystemSeed());
  auto places = std::make_unique<Places>(std::move(options), *store, clock);
  places->own_ = std::move(store);
  return places;
}

Places::Places(Options options, object_store::ObjectStore& store, base::Clock& clock)
    : options_(std::move(options)),
      cache_({.folder = options_.cache, .most_bytes = options_.cache_bytes}, store, clock) {}

absl::StatusOr<std::string> Places::Copy(const std::string& uri, const std::stop_token& stop) {
  if (!IsRemote(uri)) return uri;
  MEDLEY_ASSIGN_OR_RETURN(const object_store::Location at, object_store::ParseLocation(uri));
  MEDLEY_ASSIGN_OR_RETURN(HeldView view, cache_.Fetch(uri, stop, options_.on_bytes));
  std::string path = view.PathOf(at).string();
  if (at.key.empty() || at.key.ends_with('/')) path += path.ends_with('/') ? "*" : "/*";
  const base::MutexLock lock(mutex_);
  held_.push_back(std::move(view));
  return path;
}

absl::Status Places::CopyUri(const std::string& field, std::string& uri, const std::stop_token& stop) {
  if (!IsRemote(uri)) return absl::OkStatus();
  absl::StatusOr<std::string> path = Copy(uri, stop);
  if (!path.ok()) return base::Annotate(path.status(), field);
  uri = "file://" + *path;
  return absl::OkStatus();
}

absl::Status Places::CopySource(const std::string& field, model::SourceSpec& source, const std::stop_token& stop) {
  MEDLEY_RETURN_IF_ERROR(CopyUri(field + ".uri", source.uri, stop));
  MEDLEY_RETURN_IF_ERROR(CopyUri(field + ".labels", source.labels, stop));
  for (auto& [name, uri] : source.files) MEDLEY_RETURN_IF_ERROR(CopyUri(field + ".files." + name, uri, stop));
  return absl::OkStatus();
}

absl::Status Places::CopyData(model::DataSpec& data, const std::stop_token& stop) {
  MEDLEY_RETURN_IF_ERROR(CopySource("spec.data.train", data.train, stop));
  if (data.validation) MEDLEY_RETURN_IF_ERROR(CopySource("spec.data.validation", data.validation->source, stop));
  if (data.test) MEDLEY_RETURN_IF_ERROR(CopySource("spec.data.test", *data.test, stop));
  return absl::OkStatus();
}

absl::Status Places::CopyModel(model::JobSpec& spec, const std::stop_token& stop) {
  MEDLEY_RETURN_IF_ERROR(CopyUri("spec.model.exported.uri", spec.model.exported_uri, stop));
  MEDLEY_RETURN_IF_ERROR(CopyUri("spec.model.torchScript.uri", spec.model.torchscript_uri, stop));
  std::string& from = spec.model.initial_from;
  if (!IsRemote(from)) return absl::OkStatus();
  std::string folder = from;
  while (folder.ends_with('/')) folder.pop_back();
  absl::StatusOr<std::string> files = Copy(folder + "/", stop);  // all that lie directly in it
  if (!files.ok()) return base::Annotate(files.status(), "spec.model.initialFrom");
  from = files->substr(0, files->size() - 2);
  return absl::OkStatus();
}

bool HasRemotePlaces(const model::JobSpec& spec) {
  const model::DataSpec& data = spec.data;
  if (AnyRemote(data.train) || (data.test && AnyRemote(*data.test))) return true;
  if (data.validation && AnyRemote(data.validation->source)) return true;
  const model::ModelSpec& model = spec.model;
  return IsRemote(model.exported_uri) || IsRemote(model.torchscript_uri) || IsRemote(model.initial_from);
}

}  // namespace medley::worker
