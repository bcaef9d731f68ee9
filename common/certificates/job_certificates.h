// The certificates of the processes of one job (docs/adr/0021-a-certificate-authority-per-job.md). Each job has its own
// CA, which the operator makes and which the job's Secret holds. Each process signs its own certificates with it. All
// of them have the same name, made from the job's UID: a process verifies that its peer belongs to the job, whatever
// the peer's address. Pure but for random keys; errors as in certificates.h.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/certificates/certificates.h"

namespace medley::certificates {

// The name in the certificates: "UID.jobs.medley.internal".
std::string JobName(const std::string& job_uid);

// Valid for ten years, which is the longest that a job can run.
absl::StatusOr<KeyPair> MakeJobAuthority(const std::string& job_uid, base::WallTime now);
// Likewise, with a key that follows from `seed`, as DeriveAuthority.
absl::StatusOr<KeyPair> DeriveJobAuthority(const std::string& job_uid, base::WallTime created, std::string_view seed);

// 64 bits that tell the credentials of jobs apart and reveal nothing of them, as 16 hexadecimal digits: of the token
// and of the key of the CA, which is empty in a job without certificates.
std::string CredentialsFingerprint(std::string_view token, std::string_view ca_key);

// Valid for `lifetime` from `now`, and for an hour before, because clocks of machines differ.
absl::StatusOr<KeyPair> IssueForJob(const KeyPair& authority, const std::string& job_uid, base::WallTime now,
                                    base::nanoseconds lifetime);

}  // namespace medley::certificates
