// What a parser found in a body, and the small texts that all of them read. Internal to feeds/.
// Pure.
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
  // What the source itself says it has no price for, or sells in a form that we do not buy: left
  // out on purpose.
  int64_t skipped = 0;
  std::vector<absl::Status> warnings;
};

// What of a source is wanted. Empty lists want everything.
struct Selection {
  std::vector<std::string> regions;
  std::vector<std::string> instance_types;  // exact, or a beginning with '*': "p3.*"
  bool Wants(std::string_view region, std::string_view instance_type) const;
};

// A price as text: "0.3405", "9.0E-4". Finite and greater than 0. Errors: InvalidArgument quoting
// the text.
absl::StatusOr<double> ParsePrice(std::string_view text);
// The same rule for a number.
absl::Status CheckPrice(double price);

// "us-east-1" of "us-east-1b", "us-east-1-atl-1a", "us-east-1-wl1-bos-wlz-1"; empty when the text
// is no zone of AWS.
std::string AwsRegionOfZone(std::string_view zone);

// At most 100 bytes, without control characters: for messages that quote what came from the
// network.
std::string Quoted(std::string_view text);

}  // namespace medley::sched
