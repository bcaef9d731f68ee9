// Readiness probes: their specification, how results add up, and the probes over the network.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::localcluster {

struct ProbeSpec {
  enum class Kind { kTcp, kHttp, kExec };
  Kind kind = Kind::kTcp;
  int port = 0;
  std::string host;  // empty: the pod's address
  std::string path = "/";
  std::vector<std::string> command;
  base::nanoseconds initial_delay{0};
  base::nanoseconds period = base::seconds(10);
  base::nanoseconds timeout = base::seconds(1);
  int success_threshold = 1;
  int failure_threshold = 3;
};

// Reads container.readinessProbe; looks up named ports in container.ports. Returns nullopt if there is no probe.
// Errors: InvalidArgument for an unknown port and for other kinds of probe.
absl::StatusOr<std::optional<ProbeSpec>> ReadinessProbe(const kube::Json& container);

// Turns probe results into readiness: `success_threshold` successes in a row make the container ready,
// `failure_threshold` failures in a row make it unready. Not thread-safe.
class ProbeTally {
 public:
  explicit ProbeTally(const ProbeSpec& spec) : success_(spec.success_threshold), failure_(spec.failure_threshold) {}
  void Count(bool good);
  bool ready() const { return ready_; }

 private:
  const int success_;
  const int failure_;
  int run_ = 0;  // length of the current run of equal results; negative for failures
  bool ready_ = false;
};

// Probes `address`: a connection (kTcp), or an answer from 200 to 399 (kHttp). Returns within the probe's timeout.
// Errors: Unavailable, DeadlineExceeded.
absl::Status AskProbe(const ProbeSpec& spec, const std::string& address, base::Clock& clock);

}  // namespace medley::localcluster
