// A connection that is encrypted (TLS 1.3), and both ends of which show a certificate of the job's CA.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "worker/collective/peer_stream.h"

struct ssl_ctx_st;
struct ssl_st;

namespace medley::worker {

// PEM files, and the name that is in every certificate of the job.
struct GroupTls {
  std::string authority;
  std::string identity;  // certificate and key
  std::string name;
  int64_t bytes_per_key = int64_t{64} << 30;  // after so many a direction gets a new key (RFC 8446, 5.5)
};

// What all connections of a group share: the certificate as the files held it when the group began. Thread-safe.
class TlsContext {
 public:
  static absl::StatusOr<std::shared_ptr<TlsContext>> Make(const GroupTls& tls);
  ~TlsContext();

 private:
  friend class TlsStream;
  TlsContext(ssl_ctx_st* context, GroupTls tls) : context_(context), tls_(std::move(tls)) {}
  static absl::StatusOr<std::shared_ptr<TlsContext>> TryMake(const GroupTls& tls);
  ssl_ctx_st* const context_;
  const GroupTls tls_;
};

class TlsStream final : public PeerStream {
 public:
  // Shakes hands on a connected socket, which it owns from now on; `client`: this end has connected.
  static absl::StatusOr<std::unique_ptr<TlsStream>> Start(int socket, bool client, std::shared_ptr<TlsContext> context,
                                                          const Patience& patience);
  ~TlsStream() override;

  absl::Status Read(std::span<std::byte> bytes, const Patience* patience = nullptr) override;
  absl::Status Write(std::span<const std::byte> bytes, const Patience* patience = nullptr) override;
  absl::StatusOr<size_t> WriteSome(std::span<const std::byte> bytes) override;
  void Leave(std::span<const std::byte> farewell, base::SteadyTime deadline) override;  // by TLS's close_notify
  void Shutdown() override;

 private:
  TlsStream(int socket, std::shared_ptr<TlsContext> context);
  // Repeats `step`, which returns what SSL_read and the like return, until it has succeeded.
  template <typename Step>
  absl::StatusOr<int> Repeat(std::string_view what, const Patience* patience, Step step);

  const int socket_;
  const std::shared_ptr<TlsContext> context_;
  // Unless a record is half written, begins a new key when the old one was used for long enough.
  absl::Status RenewKey();

  // Only the writing thread uses these two.
  int64_t left_of_key_;        // bytes to write
  bool half_written_ = false;  // a record
  base::Mutex mutex_;          // OpenSSL's connections are not thread-safe
  ssl_st* ssl_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace medley::worker
