#include "operator/records/job_credentials.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/certificates/job_certificates.h"

namespace medley::ops {
namespace {

absl::StatusOr<std::vector<JobCredentials>> DeriveEach(const RecordKeys& keys, const kube::Object& job, bool tls,
                                                       base::WallTime created) {
  const kube::Key key = job.key();
  const auto derive = [&](const char* what) { return keys.Derive({what, key.ns, key.name, job.uid()}); };
  std::vector<JobCredentials> all;
  for (std::string& token : derive(tls ? "token with CA" : "token")) all.push_back({std::move(token), "", ""});
  if (!tls) return all;
  const std::vector<std::string> seeds = derive("CA");
  for (size_t i = 0; i < all.size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(certificates::KeyPair authority,
                            certificates::DeriveJobAuthority(job.uid(), created, seeds[i]));
    all[i].ca_certificate = std::move(authority.certificate);
    all[i].ca_key = std::move(authority.key);
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<JobCredentials>> DeriveCredentials(const RecordKeys& keys, const kube::Object& job, bool tls,
                                                              base::WallTime now) {
  // A clock behind that of the API server must not make certificates of the future.
  const base::WallTime created =
      std::min(base::ParseTime(job.String("/metadata/creationTimestamp")).value_or(now), now);
  MEDLEY_ASSIGN_OR_RETURN(std::vector<JobCredentials> all, DeriveEach(keys, job, tls, created));
  MEDLEY_ASSIGN_OR_RETURN(std::vector<JobCredentials> others, DeriveEach(keys, job, !tls, created));
  all.insert(all.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  return all;
}

}  // namespace medley::ops
