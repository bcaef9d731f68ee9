// What an installation needs, looked at once: `medley-operator --check`, which is the chart's `helm test`. Reads only.
#pragma once

#include <absl/status/status.h>

#include <ostream>
#include <stop_token>

#include "common/base/clock.h"
#include "common/kube/client.h"
#include "operator/app/operator_app.h"

namespace medley::ops {

// The API server answers and may be read with the operator's rights, the definitions are there, the scheduling service
// takes the token and tells prices (waited for, at most `patience`). One line to `out` for each finding. Returns the
// first trouble, in words for whoever installs: NotFound (definitions), PermissionDenied (rights), Unauthenticated
// (token), Unavailable (an address, a certificate), DeadlineExceeded.
absl::Status Check(const OperatorOptions& options, kube::Client& client, base::Clock& clock,
                   base::nanoseconds patience, std::ostream& out, std::stop_token stop);

}  // namespace medley::ops
