#include "worker/collective/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kReadBuffer = size_t{256} << 10;

std::string Reason() {
  const unsigned long code = ERR_peek_last_error();
  char text[256] = "the connection was closed";
  if (code != 0) {
    ERR_error_string_n(code, text, sizeof text);
  } else if (errno != 0) {
    return std::strerror(errno);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Make(const GroupTls& tls) {
  auto made = TryMake(tls);
  return made.ok() ? std::move(made) : TryMake(tls);  // the file may have been replaced between two looks at it
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::TryMake(const GroupTls& tls) {
  ERR_clear_error();
  ssl_ctx_st* context = SSL_CTX_new(TLS_method());
  if (context == nullptr) return base::Internal("TLS: {}", Reason());
  std::shared_ptr<TlsContext> made(new TlsContext(context, tls));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_read_ahead(context, 1);  // several records in a call to the system
  SSL_CTX_set_default_read_buffer_len(context, kReadBuffer);
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") != 1 ||
      SSL_CTX_load_verify_locations(context, tls.authority.c_str(), nullptr) != 1 ||
      SSL_CTX_use_certificate_chain_file(context, tls.identity.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, tls.identity.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return base::Internal("TLS with {} and {}: {}", tls.authority, tls.identity, Reason());
  }
  return made;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsStream::TlsStream(int socket, std::shared_ptr<TlsContext> context)
    : socket_(socket), context_(std::move(context)), left_of_key_(context_->tls_.bytes_per_key) {}

TlsStream::~TlsStream() {
  {
    base::MutexLock lock(mutex_);
    SSL_free(ssl_);
  }
  ::close(socket_);
}

template <typename Step>
absl::StatusOr<int> TlsStream::Repeat(std::string_view what, const Patience* patience, Step step) {
  while (true) {
    short wanted = 0;
    {
      base::MutexLock lock(mutex_);
      ERR_clear_error();
      errno = 0;
      const int done = step(ssl_);
      if (done > 0) return done;
      const int error = SSL_get_error(ssl_, done);
      if (error == SSL_ERROR_WANT_READ) wanted = POLLIN;
      if (error == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
      if (error == SSL_ERROR_ZERO_RETURN) return base::OutOfRange("{}: the peer has left", what);
      if (wanted == 0) return base::Unavailable("{}: {}", what, Reason());
    }
    MEDLEY_RETURN_IF_ERROR(AwaitSocket(socket_, wanted, patience, what));
  }
}

absl::StatusOr<std::unique_ptr<TlsStream>> TlsStream::Start(int socket, bool client,
                                                            std::shared_ptr<TlsContext> context,
                                                            const Patience& patience) {
  std::unique_ptr<TlsStream> stream(new TlsStream(socket, std::move(context)));
  {
    base::MutexLock lock(stream->mutex_);
    stream->ssl_ = SSL_new(stream->context_->context_);
    if (stream->ssl_ == nullptr || SSL_set_fd(stream->ssl_, socket) != 1 ||
        SSL_set1_host(stream->ssl_, stream->context_->tls_.name.c_str()) != 1) {
      return base::Internal("TLS: {}", Reason());
    }
    if (client) {
      SSL_set_connect_state(stream->ssl_);
    } else {
      SSL_set_accept_state(stream->ssl_);
    }
  }
  MEDLEY_RETURN_IF_ERROR(
      stream->Repeat("the TLS handshake", &patience, [](ssl_st* ssl) { return SSL_do_handshake(ssl); }).status());
  return stream;
}

absl::Status TlsStream::Read(std::span<std::byte> bytes, const Patience* patience) {
  while (!bytes.empty()) {
    const int size = static_cast<int>(std::min(bytes.size(), kPiece));
    MEDLEY_ASSIGN_OR_RETURN(
        const int done, Repeat("reading", patience, [&](ssl_st* ssl) { return SSL_read(ssl, bytes.data(), size); }));
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return absl::OkStatus();
}

absl::Status TlsStream::RenewKey() {
  if (left_of_key_ > 0 || half_written_) return absl::OkStatus();
  left_of_key_ = context_->tls_.bytes_per_key;
  base::MutexLock lock(mutex_);
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return base::Unavailable("a new key: {}", Reason());
  return absl::OkStatus();
}

absl::StatusOr<size_t> TlsStream::WriteSome(std::span<const std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(RenewKey());
  size_t written = 0;
  base::MutexLock lock(mutex_);
  while (written < bytes.size()) {
    const int size = static_cast<int>(std::min(bytes.size() - written, kPiece));
    ERR_clear_error();
    errno = 0;
    const int done = SSL_write(ssl_, bytes.data() + written, size);
    half_written_ = done <= 0;
    if (done > 0) {
      written += static_cast<size_t>(done);
      continue;
    }
    const int error = SSL_get_error(ssl_, done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return base::Unavailable("writing: {}", Reason());
    }
    break;
  }
  left_of_key_ -= static_cast<int64_t>(written);
  return written;
}

absl::Status TlsStream::Write(std::span<const std::byte> bytes, const Patience* patience) {
  MEDLEY_RETURN_IF_ERROR(RenewKey());
  left_of_key_ -= static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const int size = static_cast<int>(std::min(bytes.size(), kPiece));
    MEDLEY_ASSIGN_OR_RETURN(
        const int done, Repeat("writing", patience, [&](ssl_st* ssl) { return SSL_write(ssl, bytes.data(), size); }));
    half_written_ = false;
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return absl::OkStatus();
}

void TlsStream::Leave(std::span<const std::byte>, base::SteadyTime deadline) {
  const Patience patience{deadline, {}};
  // 0: sent, and not answered yet.
  (void)Repeat("leaving", &patience, [](ssl_st* ssl) {
    const int done = SSL_shutdown(ssl);
    return done == 0 ? 1 : done;
  });
  Shutdown();
}

void TlsStream::Shutdown() { ::shutdown(socket_, SHUT_RDWR); }

}  // namespace medley::worker
