#include "common/certificates/job_certificates.h"

#include "common/base/hash.h"
#include "common/base/status.h"

namespace medley::certificates {
namespace {

constexpr std::chrono::hours kClockSkew{1};
constexpr std::chrono::hours kAuthorityLifetime{24 * 3653};

}  // namespace

std::string JobName(const std::string& job_uid) { return job_uid + ".jobs.medley.internal"; }

absl::StatusOr<KeyPair> MakeJobAuthority(const std::string& job_uid, base::WallTime now) {
  return MakeAuthority("medley job " + job_uid, JobName(job_uid), {now - kClockSkew, now + kAuthorityLifetime});
}

absl::StatusOr<KeyPair> IssueForJob(const KeyPair& authority, const std::string& job_uid, base::WallTime now,
                                    base::nanoseconds lifetime) {
  const auto end = std::chrono::time_point_cast<base::WallTime::duration>(now + lifetime);
  return Issue(authority, {JobName(job_uid)}, {now - kClockSkew, end});
}

}  // namespace medley::certificates
