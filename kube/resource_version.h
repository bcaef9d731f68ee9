// Order of resourceVersions (client-go's resourceversion.CompareResourceVersion). Pure.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace medley::kube {

// Defined for two versions of the same resource that are well-formed decimals (no sign, no leading zero,
// not "0"): the longer one is newer, then the bytes decide. Nothing for anything else; equality of
// strings is always meaningful, order is not.
std::optional<std::strong_ordering> CompareResourceVersion(std::string_view a, std::string_view b);

}  // namespace medley::kube
