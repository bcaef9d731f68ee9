// Asks a scheduling service for prices.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "common/base/clock.h"

namespace medley::scheduler::v1 {
class ListPricesResponse;
}

namespace medley::cli {

struct PriceService {
  std::string address;  // HOST:PORT of its gRPC port
  std::string token;    // empty: none
  std::string ca;       // certificates (PEM) that its own must be signed by; empty: no TLS
};

// Returns HOST:PORT of the service of the cluster that `medley run` keeps running: its ports are beside its kubeconfig.
// `kubeconfig` may be empty; $KUBECONFIG is then used. Errors: NotFound saying what to do, DataLoss.
absl::StatusOr<std::string> FindPriceService(std::string kubeconfig);

// `type`: only this resource type, instance type or offering; empty: all. `since`: also the prices since then. Errors:
// those of the call, which takes at most 10 s.
absl::Status ListPrices(const PriceService& service, const std::string& type, std::optional<base::WallTime> since,
                        scheduler::v1::ListPricesResponse& response);

// Parses a Go duration ("36h") or a number of days ("7d").
absl::StatusOr<base::nanoseconds> ParseSince(const std::string& text);

}  // namespace medley::cli
