// The configuration of planners that are processes of their own (docs/operate/planners.md):
//
//   planners:
//   - name: mine                      # in planner.name of requests
//     address: planner.example:7072   # HOST:PORT or unix:PATH
//     tls: {ca: /etc/planner/ca.crt}  # required unless the address is of this machine
//
// Parsing is strict: an unknown field, a wrong type or a name that is taken is an error that names the field's path.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::sched {

struct RemotePlannerTls {
  std::filesystem::path ca;  // certificates (PEM) that sign the planner's; empty: the system's
  std::string server_name;   // that the planner's certificate must have; empty: the host of the address
};

struct RemotePlannerConfig {
  std::string name;                     // lower-case letters, digits and hyphens, at most 63
  std::string address;                  // HOST:PORT or unix:PATH
  std::string planner;                  // request.planner.name in what the process is asked
  std::string description;              // for the list of planners
  double timeout_seconds = 0;           // longest time of one call, above 0 and at most 3600
  std::optional<RemotePlannerTls> tls;  // nullopt: plain text
  std::filesystem::path token_file;     // the bearer token that is sent; empty: none
};

// `taken`: names of other planners. `insecure` allows addresses of other machines without TLS. Errors: InvalidArgument,
// FailedPrecondition (no TLS).
absl::StatusOr<std::vector<RemotePlannerConfig>> ParseRemotePlanners(std::string_view text,
                                                                     const std::vector<std::string>& taken,
                                                                     bool insecure);
// Also the errors of base::ReadFile.
absl::StatusOr<std::vector<RemotePlannerConfig>> LoadRemotePlanners(const std::filesystem::path& file,
                                                                    const std::vector<std::string>& taken,
                                                                    bool insecure);

}  // namespace medley::sched
