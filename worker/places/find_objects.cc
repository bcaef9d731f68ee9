#include "worker/places/find_objects.h"

#include <fnmatch.h>

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker {
namespace {

using object_store::Location;

constexpr char kWild[] = "*?[";

}  // namespace

bool Matches(const std::string& pattern, const std::string& key) {
  return fnmatch(pattern.c_str(), key.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

absl::StatusOr<std::vector<FoundObject>> FindObjects(object_store::ObjectStore& store, const std::string& uri,
                                                     const std::stop_token& stop) {
  MEDLEY_ASSIGN_OR_RETURN(const Location at, object_store::ParseLocation(uri));
  std::string pattern = at.key;
  const bool web = at.scheme == object_store::Scheme::kHttps;
  const bool below = pattern.empty() || pattern.ends_with('/');
  if (web && below) return base::InvalidArgument("{}: names no file", object_store::NameOf(at));
  if (below) pattern += '*';
  const bool wild = !web && pattern.find_first_of(kWild) != std::string::npos;
  if (!below) {
    const absl::StatusOr<object_store::ObjectInfo> info = store.Stat(at, stop);
    if (info.ok()) return std::vector<FoundObject>{{at, *info}};
    if (!wild || !absl::IsNotFound(info.status())) return info.status();
  }
  Location prefix = at;
  prefix.key = pattern.substr(0, pattern.find_first_of(kWild));
  MEDLEY_ASSIGN_OR_RETURN(const object_store::Listing listing, store.List(prefix, false, stop));
  std::vector<FoundObject> found;
  for (const object_store::ListedObject& object : listing.objects) {
    if (object.key.ends_with('/') || !Matches(pattern, object.key)) continue;  // the first are folders of consoles
    Location each = at;
    each.key = object.key;
    // The key becomes the name of a file.
    MEDLEY_RETURN_IF_ERROR(object_store::ParseLocation(object_store::NameOf(each)).status());
    found.push_back({std::move(each), {.bytes = object.bytes, .etag = object.etag, .modified = ""}});
    if (found.size() > kMostFound) {
      return base::ResourceExhausted("{} matches more than {} objects", object_store::NameOf(at), kMostFound);
    }
  }
  if (found.empty()) return base::NotFound("{} matches no object", object_store::NameOf(at));
  std::ranges::sort(found, {}, [](const FoundObject& object) { return object.at.key; });
  return found;
}

}  // namespace medley::worker
