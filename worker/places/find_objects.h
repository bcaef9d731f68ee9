// The objects that an address means: one, those of a pattern, or all below a prefix.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/object_store/object_store.h"

namespace medley::worker {

struct FoundObject {
  object_store::Location at;
  object_store::ObjectInfo info;
};

inline constexpr size_t kMostFound = 100'000;

// Sorted by name. "s3://bucket/train/part-*.csv.gz" means what the shell means by *, ? and [...], which match no "/";
// an object with just this name comes first. "s3://bucket/train/" means all that lie directly below. Errors: NotFound
// "s3://bucket/x-* matches no object"; ResourceExhausted (kMostFound); those of the store.
absl::StatusOr<std::vector<FoundObject>> FindObjects(object_store::ObjectStore& store, const std::string& uri,
                                                     const std::stop_token& stop);

// Pure: whether the shell would take the key as one of the pattern.
bool Matches(const std::string& pattern, const std::string& key);

}  // namespace medley::worker
