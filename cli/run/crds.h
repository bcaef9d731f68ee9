// The custom resource definitions of deploy/crds, compiled in, so that the program needs no files beside it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace medley::cli {

// File name and text of each.
std::vector<std::pair<std::string_view, std::string_view>> BundledCrds();

}  // namespace medley::cli
