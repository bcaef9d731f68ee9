// What an installation needs, looked at once: `medley-operator --check`, which is the chart's
// `helm test`. Reads only, and asks for one small plan.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <ostream>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "kube/client.h"
#include "operator/app/operator_app.h"

namespace medley::ops {

struct CheckOptions {
  std::optional<kube::Key> lease;  // of the operator's replicas; none: they elect no leader
  std::string operator_url;        // "http://host:port" of their /readyz; empty: not looked at
  std::string rest_url;            // "https://host:port" of the scheduling service's REST; empty: not asked
  base::nanoseconds patience{};    // for what has just been installed
};

// The API server answers and may be read with the operator's rights, the definitions are there; the
// scheduling service takes the token, plans, over gRPC and over REST, and tells prices; the operator
// is ready, and its leader renews the Lease. One line to `out` for each finding.
// Returns the first trouble, in words for whoever installs: NotFound (definitions), PermissionDenied
// (rights), Unauthenticated (token), FailedPrecondition (a certificate), Unavailable (an address),
// DeadlineExceeded (no prices, no leader), Internal (a plan that cannot be right).
absl::Status Check(const OperatorOptions& options, const CheckOptions& check, kube::Client& client, base::Clock& clock,
                   std::ostream& out, std::stop_token stop);

}  // namespace medley::ops
