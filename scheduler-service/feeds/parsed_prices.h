// The result of a parser, and helpers that all parsers use. Internal to feeds/. Pure.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

inline constexpr char kSpot[] = "spot";
inline constexpr char kOnDemand[] = "on-demand";

struct ParsedPrices {
  std::vector<CatalogEntry> entries;
  // Number of items that were skipped: the source has no price for them, or we do not buy them in this form.
  int64_t skipped = 0;
  std::vector<absl::Status> warnings;
};

// The part of a source that the feed reads. An empty list selects everything.
struct Selection {
  std::vector<std::string> regions;
  std::vector<std::string> instance_types;  // exact, or a prefix followed by '*': "p3.*"
  bool Wants(std::string_view region, std::string_view instance_type) const;
};

// Parses a price such as "0.3405" or "9.0E-4", which must be finite and greater than 0. Errors: InvalidArgument quoting
// the text.
absl::StatusOr<double> ParsePrice(std::string_view text);
// Checks that a price is finite and greater than 0.
absl::Status CheckPrice(double price);

// The region of an AWS zone: "us-east-1" for "us-east-1b", "us-east-1-atl-1a" and "us-east-1-wl1-bos-wlz-1". Empty if
// the text is not an AWS zone or region.
std::string AwsRegionOfZone(std::string_view zone);

// At most 100 bytes of `text`, without control characters, for messages that quote text from the network.
std::string Quoted(std::string_view text);

}  // namespace medley::sched
