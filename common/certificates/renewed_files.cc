#include "common/certificates/renewed_files.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::certificates {

absl::StatusOr<std::unique_ptr<RenewedFiles>> RenewedFiles::Start(const std::string& authority, Make make,
                                                                  base::nanoseconds lifetime, base::Clock& clock) {
  if (lifetime < base::seconds(3)) return base::InvalidArgument("a certificate must be valid for at least 3 s");
  MEDLEY_ASSIGN_OR_RETURN(std::filesystem::path folder, base::MakeTempDir("medley-tls"));
  std::unique_ptr<RenewedFiles> files(new RenewedFiles(std::move(folder), std::move(make), lifetime, clock));
  MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(files->authority(), authority));
  MEDLEY_RETURN_IF_ERROR(files->Write());
  files->thread_ = std::jthread([self = files.get()](const std::stop_token& stop) { self->Renew(stop); });
  return files;
}

RenewedFiles::RenewedFiles(std::filesystem::path folder, Make make, base::nanoseconds lifetime, base::Clock& clock)
    : folder_(std::move(folder)), make_(std::move(make)), lifetime_(lifetime), clock_(clock) {}

RenewedFiles::~RenewedFiles() {
  thread_ = {};  // stops and joins it
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::Status RenewedFiles::Write() {
  MEDLEY_ASSIGN_OR_RETURN(const KeyPair made, make_(clock_.Now(), lifetime_));
  return base::WriteFileAtomic(identity(), made.certificate + made.key);
}

void RenewedFiles::Renew(const std::stop_token& stop) {
  const base::nanoseconds pause = lifetime_ * 2 / 3;
  base::nanoseconds next = pause;
  while (clock_.SleepFor(next, stop)) {
    const absl::Status written = Write();
    next = written.ok() ? pause : std::max<base::nanoseconds>(lifetime_ / 30, base::milliseconds(100));
    if (written.ok()) {
      base::log::Debug("renewed the certificate of this process");
    } else {
      base::log::Warn("renewing the certificate of this process failed", {{"error", base::ToString(written)}});
    }
  }
}

}  // namespace medley::certificates
