// The CustomResourceDefinitions of deploy/crds, compiled into the program, so that it needs no files.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace medley::ops {

// The (file name, text) of each definition.
std::vector<std::pair<std::string_view, std::string_view>> BundledCrds();

}  // namespace medley::ops
