// By what a job knows its own checkpoints and its own journal. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace medley::worker {

struct JobIdentity {
  std::string model;         // model::Fingerprint of Purpose::kModel: a job restores only checkpoints with it
  std::string settings;      // what that is a fingerprint of, as JSON: by it a refusal names what differs
  std::string profile;       // model::ProfileHash
  std::string digest;        // model::Fingerprint of Purpose::kJob: a coordinator continues only a journal with it
  std::string job_settings;  // what that is a fingerprint of, as JSON
};

// `spec_json`: a valid spec (Environment::spec_json). The paths of files count as they are on this machine.
JobIdentity IdentityOf(std::string_view spec_json);

}  // namespace medley::worker
