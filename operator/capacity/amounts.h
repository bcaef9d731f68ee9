// Amounts of resources in whole numbers, as the Kubernetes scheduler and quotas count them. Pure.
//
// Cpu is in millicores, everything else in its own unit (bytes, devices, pods); each quantity is
// rounded up. What is absent is not asked for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace medley::ops {

using Amounts = std::map<std::string, int64_t, std::less<>>;

// Names of quotas (requests.cpu, limits.cpu) are read as their resource is. What is no quantity
// counts as 0.
Amounts ReadAmounts(const kube::Json& map);
int64_t ReadAmount(std::string_view name, const kube::Json& value);

// The inverse, in whole units ("1500m", "4096").
kube::Json WriteAmounts(const Amounts& amounts);

int64_t AmountOf(const Amounts& amounts, std::string_view name);  // 0: absent
void Add(const Amounts& what, Amounts& to);
void Subtract(const Amounts& what, Amounts& from);
void RaiseTo(const Amounts& least, Amounts& amounts);  // the greater of both, name by name

}  // namespace medley::ops
