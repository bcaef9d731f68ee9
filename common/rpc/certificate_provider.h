// Internal to common/rpc.
#pragma once

#include <memory>

#include "common/rpc/mutual_tls.h"

namespace grpc::experimental {
class CertificateProviderInterface;
}

namespace medley::rpc {

struct MutualTls::Provider {
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> certificates;
};

}  // namespace medley::rpc
