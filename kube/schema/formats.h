// The formats of texts that Kubernetes knows. Pure.
#pragma once

#include <string>
#include <string_view>

namespace medley::kube {

// True if `text` has the format ("date-time", "ipv4", "duration", ...). Unknown formats accept every text.
bool HasFormat(std::string_view format, const std::string& text);

}  // namespace medley::kube
