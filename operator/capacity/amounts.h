// Amounts of resources as whole numbers, as the Kubernetes scheduler and quotas count them. Pure.
//
// CPU is in millicores, every other resource in its own unit (bytes, devices, pods); quantities are rounded up. An
// absent resource counts as 0.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace medley::ops {

using Amounts = std::map<std::string, int64_t, std::less<>>;

// A quota's name (requests.cpu, limits.cpu) has the unit of its resource. A value that is not a quantity counts as 0.
Amounts ReadAmounts(const kube::Json& map);
int64_t ReadAmount(std::string_view name, const kube::Json& value);

// The inverse of ReadAmounts ("1500m", "4096").
kube::Json WriteAmounts(const Amounts& amounts);

int64_t AmountOf(const Amounts& amounts, std::string_view name);  // 0: absent
void Add(const Amounts& what, Amounts& to);
void Subtract(const Amounts& what, Amounts& from);
void RaiseTo(const Amounts& least, Amounts& amounts);  // sets each amount to the larger of the two

}  // namespace medley::ops
