// The feed `file`: a price file (price_file.h). It compares the file's content, so it detects rewriting, replacement
// and Kubernetes' symlink swaps. An invalid entry rejects the whole file.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/document/reader.h"
#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

// The poller reads the file every `period`.
std::unique_ptr<Feed> MakeFileFeed(const std::string& name, std::filesystem::path path, base::nanoseconds period);

// A FeedFactory for the configuration {path: FILE}.
absl::StatusOr<std::unique_ptr<Feed>> MakeFileFeedFrom(const std::string& name, document::Reader options);

}  // namespace medley::sched
