// Who we are to the server and whom we trust: a token, a certificate with its key, authorities. What lives
// in a file is read again while the program runs, because files of a pod are replaced before they expire.
// Internal to kube/client. Thread-safe.
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
    std::string ca;  // PEM, as are the next two
    std::string certificate;
    std::string key;
    uint64_t tls_generation = 0;  // grows with each change of the last three: older connections end
  };

  // `clock` is borrowed.
  Credentials(const ClientConfig& config, base::Clock& clock);

  // Reads the files again when they were read a minute ago (client-go's period for tokens). A file that
  // cannot be read, or is empty, leaves what was known.
  std::shared_ptr<const Snapshot> Current();
  // The server refused `used` (401), or TLS failed with it: reads the files now, and asks the credential
  // plugin for another token. True when something else is known by then, so that another try makes sense.
  bool Renew(const Snapshot& used);

 private:
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Set(Snapshot next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Differs(const Snapshot& used);

  const ClientConfig config_;
  const bool has_files_;
  base::Clock& clock_;
  base::Mutex renew_mutex_;  // one renewal at a time: a plugin may take long. Before mutex_
  base::Mutex mutex_;
  std::shared_ptr<const Snapshot> current_ ABSL_GUARDED_BY(mutex_);
  std::optional<base::SteadyTime> read_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
