#include "operator/capacity/amounts.h"

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"

namespace medley::ops {
namespace {

constexpr double kMost = 9e18;
constexpr double kNoise = 1e-6;  // rounding error of a decimal fraction as a double, in thousandths

bool IsCpu(std::string_view name) { return name == "cpu" || name == "requests.cpu" || name == "limits.cpu"; }

}  // namespace

int64_t ReadAmount(std::string_view name, const kube::Json& value) {
  double number = 0;
  if (value.is_number()) number = value.get<double>();
  if (value.is_string()) {
    const auto parsed = base::ParseQuantity(value.get_ref<const std::string&>());
    if (parsed.ok()) number = *parsed;
  }
  if (IsCpu(name)) number *= 1000;
  return static_cast<int64_t>(std::clamp(std::ceil(number - kNoise), -kMost, kMost));
}

Amounts ReadAmounts(const kube::Json& map) {
  Amounts amounts;
  if (!map.is_object()) return amounts;
  for (const auto& [name, value] : map.items()) amounts[name] = ReadAmount(name, value);
  return amounts;
}

kube::Json WriteAmounts(const Amounts& amounts) {
  kube::Json map = kube::Json::object();
  for (const auto& [name, amount] : amounts) {
    map[name] = std::to_string(amount) + (IsCpu(name) ? "m" : "");
  }
  return map;
}

int64_t AmountOf(const Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

void Add(const Amounts& what, Amounts& to) {
  for (const auto& [name, amount] : what) to[name] += amount;
}

void Subtract(const Amounts& what, Amounts& from) {
  for (const auto& [name, amount] : what) from[name] -= amount;
}

void RaiseTo(const Amounts& least, Amounts& amounts) {
  for (const auto& [name, amount] : least) {
    int64_t& value = amounts[name];
    value = std::max(value, amount);
  }
}

}  // namespace medley::ops
