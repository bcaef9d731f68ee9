// Files with a certificate that a thread renews when two thirds of its lifetime have passed.
//
// One file has certificate and key, so that readers never see those of different certificates, and is replaced
// atomically. A renewal that fails is logged and tried again. Thread-safe; the destructor removes the folder.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/certificates/certificates.h"

namespace medley::certificates {

class RenewedFiles {
 public:
  // Returns a certificate that is valid from `now`, or before, for `lifetime`.
  using Make = std::function<absl::StatusOr<KeyPair>(base::WallTime now, base::nanoseconds lifetime)>;

  // Writes the first certificate before it returns, into a new private folder in $TMPDIR. `authority`: a PEM text that
  // is written as it is.
  static absl::StatusOr<std::unique_ptr<RenewedFiles>> Start(const std::string& authority, Make make,
                                                             base::nanoseconds lifetime, base::Clock& clock);
  ~RenewedFiles();

  std::string authority() const { return (folder_ / "ca.crt").string(); }       // the path of its file
  std::string identity() const { return (folder_ / "identity.pem").string(); }  // of the certificate and its key

 private:
  RenewedFiles(std::filesystem::path folder, Make make, base::nanoseconds lifetime, base::Clock& clock);
  absl::Status Write();
  void Renew(const std::stop_token& stop);

  const std::filesystem::path folder_;
  const Make make_;
  const base::nanoseconds lifetime_;
  base::Clock& clock_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace medley::certificates
