// The configuration of prices: which feeds, and what resource types are made of their offerings (docs/prices.md).
// Strict: an unknown field, a wrong type or a name that is there twice is an error with its path.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "scheduler-service/catalog/feed_factory.h"
#include "scheduler-service/catalog/poller.h"

namespace medley::sched {

struct CatalogConfig {
  PollerOptions poller;
  std::vector<FeedSlot> feeds;
};

// `factories`: of the types of feeds beside `file`. Errors: InvalidArgument.
absl::StatusOr<CatalogConfig> ParseCatalogConfig(std::string_view text, FeedFactories factories);
// Also: NotFound and the like, for the file.
absl::StatusOr<CatalogConfig> LoadCatalogConfig(const std::filesystem::path& path, const FeedFactories& factories);

// The short form: one price file, looked at every `period`. `medley-scheduler --prices FILE`.
CatalogConfig OneFileConfig(const std::filesystem::path& path, base::nanoseconds period);

}  // namespace medley::sched
