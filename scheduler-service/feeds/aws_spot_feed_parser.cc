#include "scheduler-service/feeds/aws_spot_feed_parser.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/document/reader.h"
#include "scheduler-service/feeds/answer_limits.h"

namespace medley::sched {
namespace {

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
std::string LinuxPrice(const document::Reader& size) {
  size.Require({"valueColumns"});
  for (const document::Reader& column : size.List("valueColumns")) {
    if (column.RequiredString("name") != "linux") continue;
    column.Require({"prices"});
    const document::Reader prices = column.Child("prices");
    prices.Require({"USD"});
    return prices.String("USD");
  }
  return "";
}

absl::Status ParseSizes(const document::Reader& family, const std::string& region, const Selection& selection,
                        ParsedPrices& out) {
  const std::string place = AwsRegionOfZone(region);
  family.Require({"sizes"});
  for (const document::Reader& size : family.List("sizes")) {
    const std::string type = size.RequiredString("size");
    const std::string text = LinuxPrice(size);
    if (!size.status().ok()) return base::Annotate(size.status(), region + "/" + Quoted(type));
    if (text.empty() || text.starts_with("N/A") || !selection.Wants(place, type)) {
      ++out.skipped;
      continue;
    }
    const absl::StatusOr<double> price = ParsePrice(text);
    if (!price.ok()) return base::Annotate(price.status(), region + "/" + Quoted(type));
    CatalogEntry entry;
    entry.offering = model::Offering{"aws", place, place == region ? "" : region, type, kSpot, 1};
    entry.price_per_instance_hour = *price;
    out.entries.push_back(std::move(entry));
  }
  return family.status();
}

}  // namespace

absl::StatusOr<ParsedPrices> ParseAwsSpotFeed(std::string_view body, const Selection& selection) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string_view text, Unwrap(body));
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json tree, document::ParseJson(text, kAnswerLimits));
  const document::Reader answer(tree);
  answer.Require({"config"});
  const document::Reader config = answer.Child("config");
  const std::string rate = config.RequiredString("rate");
  config.Require({"regions"});
  const std::vector<document::Reader> regions = config.List("regions");
  MEDLEY_RETURN_IF_ERROR(answer.status());
  if (rate != "perhr") return base::InvalidArgument("config.rate: must be perhr, is '{}'", Quoted(rate));
  if (regions.empty()) return base::InvalidArgument("config.regions: must not be empty");
  ParsedPrices out;
  for (const document::Reader& item : regions) {
    const std::string name = item.RequiredString("region");
    item.Require({"instanceTypes"});
    const std::vector<document::Reader> families = item.List("instanceTypes");
    MEDLEY_RETURN_IF_ERROR(item.status());
    const std::string region = CurrentRegionName(name);
    if (AwsRegionOfZone(region).empty()) {
      return base::InvalidArgument("{}.region: '{}' is not an AWS region", item.path(), Quoted(name));
    }
    for (const document::Reader& family : families) {
      MEDLEY_RETURN_IF_ERROR(ParseSizes(family, region, selection, out));
    }
  }
  return out;
}

}  // namespace medley::sched
