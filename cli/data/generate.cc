#include "cli/data/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "worker/data/record.h"

namespace medley::cli {
namespace {

constexpr size_t kCounts = 13;
constexpr std::array<uint64_t, 26> kDifferentValues = {1396,  553,  2594031, 698469, 290, 23,     12048,   608,  3,
                                                       65156, 5309, 2186509, 3128,   26,  12750,  1537323, 10,   5002,
                                                       2118,  4,    1902327, 17,     15,  135790, 94,      84305};

// A rank in [0, n). The ranks from 2^k - 1 to 2^(k+1) - 2 are together 0.93 times as frequent as those before them,
// which is nearly a law of Zipf with the exponent 1.1.
uint64_t RareRank(base::Rng& rng, uint64_t n) {
  constexpr double kNext = 0.93;
  double all = 0, weight = 1;
  for (uint64_t width = 1; width <= n; width *= 2, weight *= kNext) all += weight;
  double at = rng.Uniform() * all;
  uint64_t width = 1;
  for (weight = 1; at >= weight && width * 2 <= n; width *= 2, weight *= kNext) at -= weight;
  return std::min(n - 1, width - 1 + rng.Below(width));
}

// Between -1 and 1, always the same for a value of a field.
double EffectOf(uint64_t value) { return static_cast<double>(base::Mix64(value) >> 11) * 0x1.0p-52 - 1; }

}  // namespace

void CriteoRows::AppendHeader(std::string& text) const {
  if (delimiter_ == worker::kLibsvmDelimiter) return;
  text += "label";
  for (size_t i = 1; i <= kCounts; ++i) fmt::format_to(std::back_inserter(text), "{}i{}", delimiter_, i);
  for (size_t i = 1; i <= kDifferentValues.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}c{}", delimiter_, i);
  }
  text += '\n';
}

void CriteoRows::AppendRow(std::string& text) {
  constexpr uint64_t kMostCount = 1 << 16;
  constexpr uint64_t kMissingOf = 8;  // every eighth count is missing
  const bool pairs = delimiter_ == worker::kLibsvmDelimiter;
  double logit = -1;
  std::string fields;
  const auto out = std::back_inserter(fields);
  for (size_t i = 0; i < kCounts; ++i) {
    const bool missing = rng_.Below(kMissingOf) == 0;
    const uint64_t count = RareRank(rng_, kMostCount);
    if (!missing) logit += (count < 16 ? -0.1 : 0.1) * (i % 2 == 0 ? 1 : -1);
    if (pairs) {
      if (!missing && count != 0) fmt::format_to(out, " {}:{}", i + 1, count);
    } else {
      fields += delimiter_;
      if (!missing) fmt::format_to(out, "{}", count);
    }
  }
  for (size_t i = 0; i < kDifferentValues.size(); ++i) {
    const uint64_t rank = RareRank(rng_, kDifferentValues[i]);
    const uint64_t value = base::Mix64(rank ^ (uint64_t{i + 1} << 40));
    logit += 0.5 * EffectOf(value);
    if (pairs) {
      fmt::format_to(out, " {}:{}", kCounts + i + 1, rank + 1);
    } else {
      fmt::format_to(out, "{}{:08x}", delimiter_, value >> 32);
    }
  }
  const double odds = logit / (1 + (logit < 0 ? -logit : logit));  // as a logistic curve, without exp
  text += rng_.Uniform() * 2 - 1 < odds ? '1' : '0';
  text += fields;
  text += '\n';
}

}  // namespace medley::cli
