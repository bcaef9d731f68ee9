// The feed `file`: a price file (price_file.h), watched by its content, so that replacing, rewriting and Kubernetes'
// symlink swaps are all seen. Taken whole or not at all.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>

#include "scheduler-service/catalog/config_node.h"
#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

// `period`: how often to look at it.
std::unique_ptr<Feed> MakeFileFeed(const std::string& name, std::filesystem::path path, base::nanoseconds period);

// Of the configuration: {path: FILE}. A FeedFactory.
absl::StatusOr<std::unique_ptr<Feed>> MakeFileFeedFrom(const std::string& name, ConfigNode options);

}  // namespace medley::sched
