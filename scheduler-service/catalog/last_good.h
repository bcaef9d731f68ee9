// Keeps the last good prices on disk, so that a service that restarts while its sources are unavailable has prices.
//
// The file has a line "medley-prices 1 HASH", where HASH is the XXH3 hash of the rest, followed by JSON. It is written
// atomically (temporary file, fsync, rename). Pure except for LoadLastGood and SaveLastGood.
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
  std::map<std::string, AcceptedPrices> sources;  // by name; without unconfirmed prices
  std::map<std::string, PublishedPrice> published;
};

LastGood CaptureLastGood(const PriceBook& book, int64_t revision);
// Ignores sources that the book does not have. The answers of a source whose configuration was edited may be of any
// size: a feed that was narrowed to fewer regions has fewer prices.
void RestoreLastGood(LastGood last, PriceBook& book);

std::string EncodeLastGood(const LastGood& last);
// Errors: DataLoss if the text is damaged.
absl::StatusOr<LastGood> DecodeLastGood(std::string_view text);

absl::Status SaveLastGood(const std::filesystem::path& path, const LastGood& last);
// Errors: those of base::ReadFile and DecodeLastGood.
absl::StatusOr<LastGood> LoadLastGood(const std::filesystem::path& path);

}  // namespace medley::sched
