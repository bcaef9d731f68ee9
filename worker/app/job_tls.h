// The certificates of this process, by which it and the other processes of its job authenticate each other.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "worker/app/environment.h"
#include "worker/collective/tls_stream.h"

namespace medley::rpc {
class MutualTls;
}
namespace medley::certificates {
class RenewedFiles;
}

namespace medley::worker {

// Owned by the function that runs a role. Servers and channels may outlive it, but then miss renewals.
class JobTls {
 public:
  // Makes the first certificate, signed by the job's CA.
  static absl::StatusOr<JobTls> Make(const Environment& env, base::Clock& clock);
  JobTls(JobTls&&) noexcept;
  ~JobTls();

  // Null: the job has no CA, and its processes talk in plain text.
  const std::shared_ptr<const rpc::MutualTls>& credentials() const { return credentials_; }
  // The same for the tensors of trainers.
  const std::optional<GroupTls>& tensors() const { return tensors_; }

 private:
  JobTls();
  std::unique_ptr<certificates::RenewedFiles> files_;
  std::shared_ptr<const rpc::MutualTls> credentials_;
  std::optional<GroupTls> tensors_;
};

}  // namespace medley::worker
