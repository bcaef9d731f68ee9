// The price configuration: the feeds, and the resource types derived from their offerings (docs/operate/prices.md).
// Parsing is strict: an unknown field, a wrong type or a duplicate name is an error that names the path of the field.
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
  std::vector<ConfiguredFeed> feeds;
};

// `factories` create all types of feeds except `file`. Errors: InvalidArgument.
absl::StatusOr<CatalogConfig> ParseCatalogConfig(std::string_view text, FeedFactories factories);
// Also the errors of base::ReadFile.
absl::StatusOr<CatalogConfig> LoadCatalogConfig(const std::filesystem::path& path, const FeedFactories& factories);

// The configuration for `medley-scheduler --prices FILE`: one price file that is checked every `period`.
CatalogConfig OneFileConfig(const std::filesystem::path& path, base::nanoseconds period);

}  // namespace medley::sched
