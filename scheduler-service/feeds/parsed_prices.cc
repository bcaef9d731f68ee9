#include "scheduler-service/feeds/parsed_prices.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/status.h"
#include "common/model/checks.h"

namespace medley::sched {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool Matches(const std::string& pattern, std::string_view text) {
  if (!pattern.empty() && pattern.back() == '*') return text.starts_with(pattern.substr(0, pattern.size() - 1));
  return text == pattern;
}

}  // namespace

bool Selection::Wants(std::string_view region, std::string_view instance_type) const {
  const bool region_wanted = regions.empty() || std::find(regions.begin(), regions.end(), region) != regions.end();
  return region_wanted && (instance_types.empty() ||
                           std::any_of(instance_types.begin(), instance_types.end(),
                                       [&](const std::string& pattern) { return Matches(pattern, instance_type); }));
}

absl::Status CheckPrice(double price) {
  if (model::IsSourcePrice(price)) return absl::OkStatus();
  return base::InvalidArgument("{} is not a price greater than 0 and at most 1e9", price);
}

absl::StatusOr<double> ParsePrice(std::string_view text) {
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (error != std::errc() || end != text.data() + text.size() || !CheckPrice(price).ok()) {
    return base::InvalidArgument("'{}' is not a price greater than 0 and at most 1e9", Quoted(text));
  }
  return price;
}

std::string AwsRegionOfZone(std::string_view zone) {
  // A region is lower-case words joined by hyphens, up to the first number: "us-gov-east-1".
  size_t at = 0;
  int words = 0;
  while (at < zone.size() && IsLower(zone[at])) {
    while (at < zone.size() && IsLower(zone[at])) ++at;
    if (at == zone.size() || zone[at] != '-') return "";
    ++at;
    ++words;
  }
  const size_t digits = at;
  while (at < zone.size() && IsDigit(zone[at])) ++at;
  if (words < 2 || at == digits) return "";
  const bool ends = at == zone.size() || IsLower(zone[at]) || zone[at] == '-';
  return ends ? std::string(zone.substr(0, at)) : "";
}

std::string Quoted(std::string_view text) {
  std::string out(text.substr(0, 100));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text.size() > 100 ? out + "..." : out;
}

}  // namespace medley::sched
