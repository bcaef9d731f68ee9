// The order of resourceVersions (client-go's resourceversion.CompareResourceVersion). Pure.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace medley::kube {

// Compares two versions of the same resource that are well-formed decimals (no sign, no leading zero, not "0"): the
// longer one is newer; if both are equally long, the bytes decide. Returns nullopt for other strings, which may only be
// compared for equality.
std::optional<std::strong_ordering> CompareResourceVersion(std::string_view a, std::string_view b);

}  // namespace medley::kube
