// Internal to common/rpc.
#pragma once

#include <memory>

#include "common/http2_front/tls.h"
#include "common/rpc/mutual_tls.h"

namespace grpc::experimental {
class CertificateProviderInterface;
}

namespace medley::rpc {

struct MutualTls::Provider {
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> certificates;  // of channels
  http2_front::TlsOptions server;
};

}  // namespace medley::rpc
