// Asks a scheduling service for prices.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
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

// Beside the kubeconfig of `medley run`; only the owner may read it.
inline constexpr char kSchedulerTokenFile[] = "scheduler.token";

// Returns the service of the cluster that `medley run` keeps running: its ports and token are beside its kubeconfig.
// `kubeconfig` may be empty; $KUBECONFIG is then used. Errors: NotFound saying what to do, DataLoss, and those of
// reading the token.
absl::StatusOr<PriceService> FindPriceService(std::string kubeconfig);

// The first line of the file. Errors: those of base::ReadFile.
absl::StatusOr<std::string> ReadTokenFile(const std::filesystem::path& file);

// `type`: only this resource type, instance type or offering; empty: all. `since`: also the prices since then. Errors:
// those of the call, which takes at most 10 s.
absl::Status ListPrices(const PriceService& service, const std::string& type, std::optional<base::WallTime> since,
                        scheduler::v1::ListPricesResponse& response);
// The same as JSON.
absl::StatusOr<std::string> ListPricesJson(const PriceService& service, const std::string& type,
                                           std::optional<base::WallTime> since);

// Parses a Go duration ("36h") or a number of days ("7d").
absl::StatusOr<base::nanoseconds> ParseSince(const std::string& text);

}  // namespace medley::cli
