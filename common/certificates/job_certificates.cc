#include "common/certificates/job_certificates.h"

#include <openssl/sha.h>

#include "common/base/hex.h"
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

absl::StatusOr<KeyPair> DeriveJobAuthority(const std::string& job_uid, base::WallTime created, std::string_view seed) {
  return DeriveAuthority("medley job " + job_uid, JobName(job_uid),
                         {created - kClockSkew, created + kAuthorityLifetime}, seed);
}

std::string CredentialsFingerprint(std::string_view token, std::string_view ca_key) {
  constexpr size_t kShown = 8;  // bytes
  const std::string all = fmt::format("{} {}\n{}", token.size(), token, ca_key);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), digest);
  return base::HexOf({reinterpret_cast<const char*>(digest), kShown});
}

absl::StatusOr<KeyPair> IssueForJob(const KeyPair& authority, const std::string& job_uid, base::WallTime now,
                                    base::nanoseconds lifetime) {
  const auto end = std::chrono::time_point_cast<base::WallTime::duration>(now + lifetime);
  return Issue(authority, {JobName(job_uid)}, {now - kClockSkew, end});
}

}  // namespace medley::certificates
