// Readiness probes: what to ask, how answers add up, and the two that ask over the network.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::kube {

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

// container.readinessProbe; named ports are looked up in container.ports. No value: there is none.
// Errors: InvalidArgument for a port that is not there, and for kinds other than the three.
absl::StatusOr<std::optional<ProbeSpec>> ReadinessProbe(const Json& container);

// Turns answers into readiness: `success_threshold` good ones in a row make ready, `failure_threshold`
// bad ones make unready. Not thread-safe.
class ProbeTally {
 public:
  explicit ProbeTally(const ProbeSpec& spec) : success_(spec.success_threshold), failure_(spec.failure_threshold) {}
  void Count(bool good);
  bool ready() const { return ready_; }

 private:
  const int success_;
  const int failure_;
  int run_ = 0;  // of equal answers; negative: bad ones
  bool ready_ = false;
};

// Asks `address`: a connection (kTcp), or an answer of 200 to 399 (kHttp), within the timeout, which also
// bounds this call. Errors: Unavailable, DeadlineExceeded.
absl::Status AskProbe(const ProbeSpec& spec, const std::string& address, base::Clock& clock);

}  // namespace medley::kube
