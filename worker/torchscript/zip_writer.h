// A zip file of uncompressed entries. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace medley::worker::torchscript {

// `entries`: names and contents, of less than 4 GiB in all.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace medley::worker::torchscript
