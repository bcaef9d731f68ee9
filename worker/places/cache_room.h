// Makes room in the folder of an ObjectCache. The caller has the folder's room.lock.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>

namespace medley::worker {

// Removes what no view has, then the views that no process reads, the longest unused first, until `bytes` more are
// within `most_bytes` and on the disk. Errors: ResourceExhausted, as the end of a sentence.
absl::Status MakeCacheRoom(const std::filesystem::path& folder, int64_t most_bytes, int64_t bytes);

// Half of the file system of the folder.
int64_t StandardCacheBytes(const std::filesystem::path& folder);

}  // namespace medley::worker
