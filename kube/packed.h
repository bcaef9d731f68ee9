// A JSON value as CBOR (RFC 8949), in a tenth of the memory. For values that are kept long and read rarely. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::kube {

class Packed {
 public:
  explicit Packed(const Json& json);
  // Returns a value equal to the original.
  Json Unpack() const;

 private:
  std::string bytes_;
};

}  // namespace medley::kube
