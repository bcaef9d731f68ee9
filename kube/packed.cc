#include "kube/packed.h"

namespace medley::kube {

Packed::Packed(const Json& json) {
  Json::to_cbor(json, bytes_);
  bytes_.shrink_to_fit();
}

Json Packed::Unpack() const { return Json::from_cbor(bytes_); }

}  // namespace medley::kube
