#include "scheduler-service/feeds/aws_spot_feed_parser.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/base/text.h"
#include "scheduler-service/feeds/json_body.h"

namespace medley::sched {
namespace {

using nlohmann::json;

// Until 2021 the feed used these names for the oldest regions.
std::string CurrentRegionName(const std::string& region) {
  static const std::map<std::string, std::string> kOld = {
      {"us-east", "us-east-1"},       {"us-west", "us-west-1"},       {"eu-ireland", "eu-west-1"},
      {"apac-sin", "ap-southeast-1"}, {"apac-syd", "ap-southeast-2"}, {"apac-tokyo", "ap-northeast-1"}};
  const auto found = kOld.find(region);
  return found == kOld.end() ? region : found->second;
}

// Returns the JSON inside `callback( ... );`, or the body itself.
absl::StatusOr<std::string_view> Unwrap(std::string_view body) {
  if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);  // a byte order mark
  body = base::Trim(body);
  constexpr std::string_view kCallback = "callback";
  if (!body.starts_with(kCallback)) return body;
  std::string_view inner = base::Trim(body.substr(kCallback.size()));
  if (inner.ends_with(';')) inner = base::Trim(inner.substr(0, inner.size() - 1));
  if (!inner.starts_with('(') || !inner.ends_with(')')) {
    return base::InvalidArgument("callback(...): truncated after {} bytes", body.size());
  }
  return inner.substr(1, inner.size() - 2);
}

// The Linux price of an instance size as text; empty if it has none.
absl::StatusOr<std::string> LinuxPrice(const json& size, const std::string& where) {
  MEDLEY_ASSIGN_OR_RETURN(const json* columns, JsonArray(size, "valueColumns", where));
  for (const json& column : *columns) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string name, JsonString(column, "name", where));
    if (name != "linux") continue;
    MEDLEY_ASSIGN_OR_RETURN(const json* prices, JsonObject(column, "prices", where));
    return JsonString(*prices, "USD", where);
  }
  return std::string();
}

absl::Status ParseSizes(const json& family, const std::string& region, const Selection& selection, ParsedPrices& out) {
  const std::string place = AwsRegionOfZone(region);
  MEDLEY_ASSIGN_OR_RETURN(const json* sizes, JsonArray(family, "sizes", region));
  for (const json& size : *sizes) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string type, JsonString(size, "size", region));
    if (type.empty()) return base::InvalidArgument("{}: an instance size has no name", region);
    const std::string where = region + "/" + Quoted(type);
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, LinuxPrice(size, where));
    if (text.empty() || text.starts_with("N/A") || !selection.Wants(place, type)) {
      ++out.skipped;
      continue;
    }
    const absl::StatusOr<double> price = ParsePrice(text);
    if (!price.ok()) return base::Annotate(price.status(), where);
    CatalogEntry entry;
    entry.offering = model::Offering{"aws", place, place == region ? "" : region, type, kSpot, 1};
    entry.price_per_instance_hour = *price;
    out.entries.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParsedPrices> ParseAwsSpotFeed(std::string_view body, const Selection& selection) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string_view document, Unwrap(body));
  MEDLEY_ASSIGN_OR_RETURN(const json answer, ParseJsonBody(document));
  MEDLEY_ASSIGN_OR_RETURN(const json* config, JsonObject(answer, "config", "answer"));
  MEDLEY_ASSIGN_OR_RETURN(const std::string rate, JsonString(*config, "rate", "config"));
  if (rate != "perhr") return base::InvalidArgument("config.rate: '{}', want perhr", Quoted(rate));
  MEDLEY_ASSIGN_OR_RETURN(const json* regions, JsonArray(*config, "regions", "config"));
  if (regions->empty()) return base::InvalidArgument("config.regions: must not be empty");
  ParsedPrices out;
  for (size_t i = 0; i < regions->size(); ++i) {
    const std::string where = fmt::format("config.regions[{}]", i);
    MEDLEY_ASSIGN_OR_RETURN(const std::string name, JsonString(regions->at(i), "region", where));
    const std::string region = CurrentRegionName(name);
    if (AwsRegionOfZone(region).empty()) {
      return base::InvalidArgument("{}.region: '{}' is not an AWS region", where, Quoted(name));
    }
    MEDLEY_ASSIGN_OR_RETURN(const json* families, JsonArray(regions->at(i), "instanceTypes", where));
    for (const json& family : *families) MEDLEY_RETURN_IF_ERROR(ParseSizes(family, region, selection, out));
  }
  return out;
}

}  // namespace medley::sched
