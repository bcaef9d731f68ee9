// Recorded spot capacity and prices, as CSV files (docs/use/traces.md describes the format). Values.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::cli::traces {

// A record every `tick_seconds`; all vectors by zone, then by tick.
struct Trace {
  std::string name;
  base::WallTime begin{};
  double tick_seconds = 0;
  std::vector<std::string> zones;
  std::vector<std::vector<int>> units;                // that could be had
  std::vector<std::vector<double>> spot_usd;          // per unit and hour
  std::vector<double> on_demand_usd;                  // by zone, per unit and hour; infinite: unknown
  std::vector<std::pair<size_t, size_t>> held_ticks;  // from, to: holes in the record, where the values before are kept
  size_t ticks() const { return units.empty() ? 0 : units.front().size(); }
};

struct ReadOptions {
  double longest_gap_seconds = 0;  // a longer hole in the record is an error
};

// Reads NAME.csv or NAME.csv.gz of the folder, and NAME-prices.csv if the record has no prices or there is one. Errors,
// which name the file and the line: no such file, larger than 64 MiB (256 MiB unpacked), not UTF-8, a wrong number of
// columns, times out of order, a hole in the record, a value that is no count or price, a zone without a price.
absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& folder, const std::string& name,
                                const ReadOptions& options = {});

// As ReadTrace, of the contents of files; `prices`: empty without one. `file` and `prices_file` are for errors.
absl::StatusOr<Trace> ParseTrace(std::string_view text, const std::string& file, std::string_view prices,
                                 const std::string& prices_file, const ReadOptions& options);

// "us-east-1" of "us-east-1a", "us-central1" of "us-central1-a"; the zone itself if it has no such form.
std::string RegionOf(std::string_view zone);

// USD per GB from region to region; absent: 0.02 between regions, as most pairs of AWS, and 0 within one.
class Egress {
 public:
  double UsdPerGb(std::string_view from_zone, std::string_view to_zone) const;

 private:
  friend absl::StatusOr<Egress> ReadEgress(const std::filesystem::path& folder);
  std::map<std::pair<std::string, std::string>, double> prices_;
};
// Reads egress.csv, or the only file whose name ends so, with or without .gz; without one: the default. Errors: as
// ReadTrace.
absl::StatusOr<Egress> ReadEgress(const std::filesystem::path& folder);

}  // namespace medley::cli::traces
