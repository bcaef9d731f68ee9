#include "cli/traces/trace.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "cli/traces/csv.h"
#include "common/base/figure.h"
#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::cli::traces {
namespace {

constexpr double kMostUnits = 1e6;
constexpr double kMostUsd = 1e9;
constexpr size_t kMostTicks = 2'000'000;
constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct TraceColumn {
  size_t zone = 0;
  bool price = false;
};

// "2025-10-04T00:10:00Z", or "2025-10-04 00:10:00", which is in UTC too.
absl::StatusOr<double> SecondsOf(std::string_view text) {
  std::string time(text);
  if (time.size() == 19 && time[10] == ' ') {
    time[10] = 'T';
    time += 'Z';
  }
  MEDLEY_ASSIGN_OR_RETURN(const base::WallTime at, base::ParseTime(time));
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

std::string TimeOf(double seconds) {
  return base::FormatTime(
      base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(base::FromSeconds(seconds))));
}

absl::StatusOr<std::vector<TraceColumn>> ColumnsOf(const CsvReader& csv, const std::string& file, Trace& trace) {
  const std::vector<std::string>& header = csv.header();
  if (header[0] != "time" || header.size() < 2) {
    return base::InvalidArgument("{}: line 1: the first column must be 'time', and one more for each zone", file);
  }
  std::vector<TraceColumn> columns(1);
  for (size_t c = 1; c < header.size(); ++c) {
    const size_t colon = header[c].find(':');
    const std::string zone = header[c].substr(0, colon);
    const std::string kind = colon == std::string::npos ? "units" : header[c].substr(colon + 1);
    if (kind != "units" && kind != "available" && kind != "usdPerHour") {
      return base::InvalidArgument(
          "{}: line 1: column '{}' is neither ZONE, ZONE:units, ZONE:available nor ZONE:usdPerHour", file,
          base::Printable(header[c]));
    }
    auto found = std::find(trace.zones.begin(), trace.zones.end(), zone);
    if (found == trace.zones.end()) found = trace.zones.insert(trace.zones.end(), zone);
    columns.push_back({static_cast<size_t>(found - trace.zones.begin()), kind == "usdPerHour"});
  }
  trace.units.resize(trace.zones.size());
  trace.spot_usd.resize(trace.zones.size());
  return columns;
}

// Appends the values before until the record goes on at `seconds`. `last`: of the record before.
absl::Status HoldValues(const CsvReader& csv, double last, double seconds, const ReadOptions& options, Trace& trace) {
  const double gap = seconds - last - trace.tick_seconds;
  if (gap < 0.5 * trace.tick_seconds) return absl::OkStatus();
  if (gap > options.longest_gap_seconds) {
    return base::InvalidArgument(
        "{}: the record has a hole: nothing between {} and {}, though it has a line every {} s. "
        "--longest-gap {}s keeps the values before for so long",
        csv.Place(), TimeOf(last), TimeOf(seconds), trace.tick_seconds, std::ceil(gap));
  }
  const auto missing = static_cast<size_t>(std::lround(gap / trace.tick_seconds));
  if (trace.ticks() + missing > kMostTicks) return absl::OkStatus();  // said by the caller
  trace.held_ticks.emplace_back(trace.ticks(), trace.ticks() + missing);
  for (size_t z = 0; z < trace.zones.size(); ++z) {
    if (!trace.units[z].empty()) trace.units[z].resize(trace.units[z].size() + missing, trace.units[z].back());
    if (!trace.spot_usd[z].empty())
      trace.spot_usd[z].resize(trace.spot_usd[z].size() + missing, trace.spot_usd[z].back());
  }
  return absl::OkStatus();
}

absl::Status AddRow(const CsvReader& csv, const std::vector<TraceColumn>& columns, Trace& trace) {
  for (size_t c = 1; c < columns.size(); ++c) {
    MEDLEY_ASSIGN_OR_RETURN(const double value, csv.Number(c, 0, columns[c].price ? kMostUsd : kMostUnits));
    if (columns[c].price) {
      trace.spot_usd[columns[c].zone].push_back(value);
    } else {
      trace.units[columns[c].zone].push_back(static_cast<int>(value));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadRows(CsvReader& csv, const std::vector<TraceColumn>& columns, const std::string& file,
                      const ReadOptions& options, Trace& trace) {
  double last = 0;
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, csv.Next());
    if (!more) break;
    const auto seconds = SecondsOf(csv[0]);
    if (!seconds.ok()) {
      return base::InvalidArgument("{}: '{}' is not a time like 2025-10-04T00:10:00Z", csv.Place(),
                                   base::Printable(csv[0], 40));
    }
    if (trace.ticks() == 0) {
      trace.begin = base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(base::FromSeconds(*seconds)));
    } else if (*seconds <= last) {
      return base::InvalidArgument("{}: the time {} is not after {} of the line before", csv.Place(),
                                   base::Printable(csv[0], 40), TimeOf(last));
    } else if (trace.ticks() == 1) {
      trace.tick_seconds = *seconds - last;
    } else if (*seconds - last < 0.5 * trace.tick_seconds) {
      return base::InvalidArgument(
          "{}: the time {} is {} s after the line before, but the record has a line every {} s", csv.Place(),
          base::Printable(csv[0], 40), *seconds - last, trace.tick_seconds);
    } else {
      MEDLEY_RETURN_IF_ERROR(HoldValues(csv, last, *seconds, options, trace));
    }
    if (trace.ticks() >= kMostTicks) {
      return base::ResourceExhausted("{}: more than {} records; give a shorter piece of it", file, kMostTicks);
    }
    last = *seconds;
    MEDLEY_RETURN_IF_ERROR(AddRow(csv, columns, trace));
  }
  if (trace.ticks() < 2) return base::InvalidArgument("{}: fewer than two records", file);
  return absl::OkStatus();
}

absl::StatusOr<size_t> PriceColumn(const CsvReader& csv, const std::string& start, const std::string& file) {
  for (size_t c = 0; c < csv.header().size(); ++c) {
    if (csv.header()[c].starts_with(start)) return c;
  }
  return base::InvalidArgument("{}: line 1: no column begins with '{}'", file, start);
}

// Constant prices, by region or by zone.
absl::Status AddPrices(std::string_view text, const std::string& file, Trace& trace) {
  MEDLEY_ASSIGN_OR_RETURN(CsvReader csv, CsvReader::Open(text, file));
  if (csv.header()[0] != "region" && csv.header()[0] != "zone") {
    return base::InvalidArgument("{}: line 1: the first column must be 'region' or 'zone'", file);
  }
  MEDLEY_ASSIGN_OR_RETURN(const size_t spot, PriceColumn(csv, "spotUsd", file));
  MEDLEY_ASSIGN_OR_RETURN(const size_t on_demand, PriceColumn(csv, "onDemandUsd", file));
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, csv.Next());
    if (!more) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(const double spot_usd, csv.Number(spot, 0, kMostUsd));
    MEDLEY_ASSIGN_OR_RETURN(const double on_demand_usd, csv.Number(on_demand, 0, kMostUsd));
    for (size_t z = 0; z < trace.zones.size(); ++z) {
      if (csv[0] != trace.zones[z] && csv[0] != RegionOf(trace.zones[z])) continue;
      if (trace.spot_usd[z].empty()) trace.spot_usd[z].assign(trace.ticks(), spot_usd);
      trace.on_demand_usd[z] = on_demand_usd;
    }
  }
}

}  // namespace

std::string RegionOf(std::string_view zone) {
  std::string_view region = zone;
  if (region.size() < 3 || std::islower(static_cast<unsigned char>(region.back())) == 0) return std::string(zone);
  region.remove_suffix(1);
  if (region.back() == '-') region.remove_suffix(1);
  if (std::isdigit(static_cast<unsigned char>(region.back())) == 0) return std::string(zone);
  return std::string(region);
}

absl::StatusOr<Trace> ParseTrace(std::string_view text, const std::string& file, std::string_view prices,
                                 const std::string& prices_file, const ReadOptions& options) {
  Trace trace;
  MEDLEY_ASSIGN_OR_RETURN(CsvReader csv, CsvReader::Open(text, file));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<TraceColumn> columns, ColumnsOf(csv, file, trace));
  for (size_t z = 0; z < trace.zones.size(); ++z) {
    const bool counted = std::any_of(columns.begin() + 1, columns.end(),
                                     [&](const TraceColumn& column) { return column.zone == z && !column.price; });
    if (!counted) {
      return base::InvalidArgument("{}: line 1: zone '{}' has a price, but no column of units", file,
                                   base::Printable(trace.zones[z]));
    }
  }
  MEDLEY_RETURN_IF_ERROR(ReadRows(csv, columns, file, options, trace));
  trace.on_demand_usd.assign(trace.zones.size(), kUnknown);
  if (!prices.empty()) MEDLEY_RETURN_IF_ERROR(AddPrices(prices, prices_file, trace));
  for (size_t z = 0; z < trace.zones.size(); ++z) {
    if (trace.spot_usd[z].empty()) {
      return base::InvalidArgument("{}: zone '{}' has no price: add a column {}:usdPerHour, or its region to {}", file,
                                   base::Printable(trace.zones[z]), base::Printable(trace.zones[z]), prices_file);
    }
  }
  return trace;
}

absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& folder, const std::string& name,
                                const ReadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadIfPresent(folder, name + ".csv"));
  const std::string file = (folder / (name + ".csv")).string();
  if (!text) return base::NotFound("{}: no such file, nor {}.gz", file, file);
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<std::string> prices, ReadIfPresent(folder, name + "-prices.csv"));
  auto trace = ParseTrace(*text, file, prices.value_or(""), (folder / (name + "-prices.csv")).string(), options);
  if (trace.ok()) trace->name = name;
  return trace;
}

double Egress::UsdPerGb(std::string_view from_zone, std::string_view to_zone) const {
  constexpr double kBetweenRegions = 0.02;
  const std::string from = RegionOf(from_zone), to = RegionOf(to_zone);
  if (from == to) return 0;
  const auto found = prices_.find({from, to});
  return found == prices_.end() ? kBetweenRegions : found->second;
}

absl::StatusOr<Egress> ReadEgress(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (name.ends_with("egress.csv")) names.push_back(name);
  }
  if (error) return base::NotFound("{}: cannot be listed: {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  if (std::find(names.begin(), names.end(), "egress.csv") != names.end()) names = {"egress.csv"};
  Egress egress;
  if (names.empty()) return egress;
  if (names.size() > 1) {
    return base::InvalidArgument("{}: both {} and {} could be the prices of transfer; name one egress.csv",
                                 folder.string(), names[0], names[1]);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<std::string> text, ReadIfPresent(folder, names[0]));
  const std::string file = (folder / names[0]).string();
  if (!text) return base::NotFound("{}: no such file", file);
  MEDLEY_ASSIGN_OR_RETURN(CsvReader csv, CsvReader::Open(*text, file));
  if (csv.header().size() != 3) {
    return base::InvalidArgument("{}: line 1: must have the columns from_region, to_region and price_usd_per_gb", file);
  }
  while (true) {
    MEDLEY_ASSIGN_OR_RETURN(const bool more, csv.Next());
    if (!more) return egress;
    MEDLEY_ASSIGN_OR_RETURN(const double usd, csv.Number(2, 0, kMostUsd));
    egress.prices_[{std::string(csv[0]), std::string(csv[1])}] = usd;
  }
}

}  // namespace medley::cli::traces
