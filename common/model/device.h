// A device that an execution plan uses: one unit of a pool. Immutable value.
#pragma once

#include <string>

namespace medley::model {

struct Device {
  std::string id;
  std::string pool;
  std::string machine;
  std::string location;
  bool operator==(const Device&) const = default;
};

}  // namespace medley::model
