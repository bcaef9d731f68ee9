// The client's token, its certificate and key, and the certificate authorities that it trusts. Values from files are
// read again while the program runs, because the files in a pod are replaced before they expire. Internal to
// kube/client. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/client/config.h"

namespace medley::kube {

class Credentials {
 public:
  struct Snapshot {
    std::string token;
    std::string ca;  // PEM, like the next two
    std::string certificate;
    std::string key;
    uint64_t tls_generation = 0;  // grows with each change of the last three; older connections are closed
  };

  // `clock` is borrowed.
  Credentials(const ClientConfig& config, base::Clock& clock);

  // Reads the files again if the last read is a minute old (client-go's period for tokens). A file that cannot be read
  // or is empty leaves the old value.
  std::shared_ptr<const Snapshot> Current();
  // Call it if the server refused `used` (401) or TLS failed with it. Reads the files now and asks the credential
  // plugin for another token. Returns true if the credentials now differ from `used`, so that a retry makes sense.
  bool Renew(const Snapshot& used);

 private:
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(Snapshot next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Differs(const Snapshot& used);

  const ClientConfig config_;
  const bool has_files_;
  base::Clock& clock_;
  base::Mutex renew_mutex_;  // one renewal at a time, as a plugin may take long; locked before mutex_
  base::Mutex mutex_;
  std::shared_ptr<const Snapshot> current_ ABSL_GUARDED_BY(mutex_);
  std::optional<base::SteadyTime> read_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
