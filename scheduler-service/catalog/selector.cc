#include "scheduler-service/catalog/selector.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace medley::sched {
namespace {

constexpr double kSmallestPrice = 0.0001;

bool FitsAny(const std::vector<std::string>& patterns, std::string_view text) {
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return FitsPattern(p, text); });
}

}  // namespace

bool FitsPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos;  // position of the last '*' in the pattern
  size_t from = 0;                       // end of the text that this '*' matches so far
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool Fits(const Selector& s, const CatalogEntry& entry) {
  if (!FitsAny(s.source, entry.source) || !FitsAny(s.resource_type, entry.resource_type)) return false;
  static const model::Offering kNone{};
  const model::Offering& offering = entry.offering ? *entry.offering : kNone;
  return FitsAny(s.provider, offering.provider) && FitsAny(s.region, offering.region) &&
         FitsAny(s.zone, offering.zone) && FitsAny(s.instance_type, offering.instance_type) &&
         FitsAny(s.capacity_type, offering.capacity_type) && FitsAny(s.gpu_model, entry.shape.gpu_model);
}

bool ParseAdjustment(std::string_view text, Override& out) {
  if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) return false;
  const double sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  const bool percent = text.back() == '%';
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0) return false;
  if (percent) {
    out.factor = 1 + sign * value / 100;
    return out.factor > 0;
  }
  out.add = sign * value;
  return true;
}

void ApplyOverrides(const std::vector<Override>& overrides, CatalogEntry& entry) {
  const Override* best = nullptr;
  for (const Override& o : overrides) {
    if (Fits(o.match, entry) && (best == nullptr || o.weight > best->weight)) best = &o;
  }
  if (best == nullptr) return;
  if (entry.price_per_instance_hour <= 0) {  // the entry has only a unit price
    const double price = best->price > 0 ? best->price : entry.price_per_unit_hour * best->factor + best->add;
    entry.price_per_unit_hour = std::max(kSmallestPrice, price);
    return;
  }
  const double before = entry.price_per_instance_hour;
  const double price = best->price > 0 ? best->price : before * best->factor + best->add;
  entry.price_per_instance_hour = std::max(kSmallestPrice, price);
  entry.price_per_unit_hour *= entry.price_per_instance_hour / before;
}

}  // namespace medley::sched
