#include "scheduler-service/process/address.h"

#include "common/base/host_port.h"
#include "common/base/status.h"

namespace medley::sched {

bool Address::loopback() const { return base::IsLoopback(host); }

absl::StatusOr<Address> ParseAddress(const std::string& text, std::string_view flag) {
  const auto parts = base::SplitHostPort(text);
  if (!parts.ok()) return base::Annotate(parts.status(), flag);
  return Address{parts->host, parts->port};
}

absl::Status CheckExposure(const Address& address, std::string_view flag, bool protected_by_tls_and_token) {
  if (protected_by_tls_and_token || address.loopback()) return absl::OkStatus();
  return base::FailedPrecondition(
      "{}: {} is not a loopback address: set --tls-cert, --tls-key and --token-file, or allow it with --insecure", flag,
      address.host);
}

}  // namespace medley::sched
