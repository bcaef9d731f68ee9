#include "worker/app/job_tls.h"

#include <string>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "common/certificates/renewed_files.h"
#include "common/rpc/mutual_tls.h"

namespace medley::worker {

JobTls::JobTls() = default;
JobTls::JobTls(JobTls&&) noexcept = default;
JobTls::~JobTls() = default;

absl::StatusOr<JobTls> JobTls::Make(const Environment& env, base::Clock& clock) {
  JobTls tls;
  if (env.ca_certificate.empty()) {
    base::log::Warn("the job's Secret has no CA: connections to other processes are not encrypted");
    return tls;
  }
  const auto issue = [authority = certificates::KeyPair{env.ca_certificate, env.ca_key}, uid = env.job_uid](
                         base::WallTime now, base::nanoseconds lifetime) {
    return certificates::IssueForJob(authority, uid, now, lifetime);
  };
  auto files = certificates::RenewedFiles::Start(env.ca_certificate, issue, env.certificate_lifetime, clock);
  if (!files.ok()) return base::Annotate(files.status(), "the certificate of this process");
  tls.files_ = *std::move(files);
  const std::string identity = tls.files_->identity();
  tls.credentials_ =
      rpc::MutualTls::FromFiles({tls.files_->authority(), identity, identity}, certificates::JobName(env.job_uid));
  tls.tensors_ = GroupTls{tls.files_->authority(), identity, certificates::JobName(env.job_uid)};
  return tls;
}

}  // namespace medley::worker
