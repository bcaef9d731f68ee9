// A JSON value in a tenth of its memory: as CBOR (RFC 8949). For what is kept long and read seldom. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::kube {

class Packed {
 public:
  explicit Packed(const Json& json);
  // An equal value.
  Json Unpack() const;

 private:
  std::string bytes_;
};

}  // namespace medley::kube
