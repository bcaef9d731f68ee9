// What is known of prices, kept on disk, so that a service that restarts while its sources are down starts priced.
//
// One file: a line "medley-prices 1 HASH" and JSON; HASH is XXH3 of the rest. Written whole (a temporary neighbour,
// fsync, rename). Pure but for Load and Save.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "scheduler-service/catalog/book.h"

namespace medley::sched {

struct LastGood {
  int64_t revision = 0;                           // of the catalog
  std::map<std::string, AcceptedPrices> sources;  // by name; doubts are not kept
  std::map<std::string, ToldPrice> told;
};

LastGood Remember(const PriceBook& book, int64_t revision);
// Sources that the book does not have are dropped.
void Recall(LastGood last, PriceBook& book);

std::string EncodeLastGood(const LastGood& last);
// Errors: DataLoss when anything at all is not as it was written.
absl::StatusOr<LastGood> DecodeLastGood(std::string_view text);

absl::Status SaveLastGood(const std::filesystem::path& path, const LastGood& last);
// Errors: NotFound, DataLoss, ...
absl::StatusOr<LastGood> LoadLastGood(const std::filesystem::path& path);

}  // namespace medley::sched
