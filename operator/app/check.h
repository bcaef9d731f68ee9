// `medley-operator --check`, which is the chart's `helm test`: checks once whether an installation is complete. It
// writes nothing to the cluster; it asks the scheduling service for one small plan.
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
  std::optional<kube::Key> lease;  // of the operator's replicas; none: they do not elect a leader
  std::string operator_url;        // "http://host:port" of their /readyz; empty: not checked
  std::string rest_url;            // "https://host:port" of the scheduling service's REST; empty: not checked
  base::nanoseconds patience{};    // how long to retry a service that is unavailable: it may be starting
};

// Checks that the API server answers and knows the CRDs, that the operator's rights suffice to read their objects, that
// the scheduling service accepts the token, plans over gRPC and REST and publishes prices, that the operator is ready,
// and that its leader renews the Lease. Writes one line to `out` for each check that passed.
// Returns the first error, worded for the person who installs: NotFound (CRDs), PermissionDenied (rights),
// Unauthenticated (token), FailedPrecondition (a certificate), Unavailable (an address), DeadlineExceeded (no prices,
// no leader), Internal (an invalid plan).
absl::Status Check(const OperatorOptions& options, const CheckOptions& check, kube::Client& client, base::Clock& clock,
                   std::ostream& out, std::stop_token stop);

}  // namespace medley::ops
