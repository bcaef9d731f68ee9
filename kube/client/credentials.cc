#include "kube/client/credentials.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::kube {
namespace {

constexpr base::nanoseconds kAge = base::seconds(60);
constexpr int64_t kMaxCredentialFile = 16 << 20;

// Sets `value` to the content of `file`, if the file can be read and is not empty.
void Take(const std::string& file, bool one_line, std::string& value) {
  if (file.empty()) return;
  auto text = base::ReadFile(file, kMaxCredentialFile);
  if (!text.ok()) {
    base::log::Warn("reading credentials failed", {{"error", base::ToString(text.status())}});
    return;
  }
  if (one_line) {
    text->erase(text->find_last_not_of(" \t\r\n") + 1);
    if (text->find_first_of("\r\n") != std::string::npos) return;
  }
  if (!text->empty()) value = *std::move(text);
}

}  // namespace

Credentials::Credentials(const ClientConfig& config, base::Clock& clock)
    : config_(config),
      has_files_(!config.token_file.empty() || !config.ca_file.empty() || !config.client_certificate_file.empty() ||
                 !config.client_key_file.empty()),
      clock_(clock),
      current_(std::make_shared<const Snapshot>(Snapshot{.token = config.token,
                                                         .ca = config.ca_data,
                                                         .certificate = config.client_certificate_data,
                                                         .key = config.client_key_data})) {}

void Credentials::Read() {
  read_at_ = clock_.Steady();
  Snapshot next = *current_;
  Take(config_.token_file, true, next.token);
  Take(config_.ca_file, false, next.ca);
  Take(config_.client_certificate_file, false, next.certificate);
  Take(config_.client_key_file, false, next.key);
  Set(std::move(next));
}

void Credentials::Set(Snapshot next) {
  const bool tls = next.ca != current_->ca || next.certificate != current_->certificate || next.key != current_->key;
  if (!tls && next.token == current_->token) return;
  if (tls) ++next.tls_generation;
  current_ = std::make_shared<const Snapshot>(std::move(next));
}

std::shared_ptr<const Credentials::Snapshot> Credentials::Current() {
  base::MutexLock lock(mutex_);
  if (has_files_ && (!read_at_ || clock_.Steady() - *read_at_ >= kAge)) Read();
  return current_;
}

bool Credentials::Differs(const Snapshot& used) {
  base::MutexLock lock(mutex_);
  return current_->token != used.token || current_->tls_generation != used.tls_generation;
}

bool Credentials::Renew(const Snapshot& used) {
  if (!has_files_ && !config_.token_source) return false;
  base::MutexLock one(renew_mutex_);
  if (Differs(used)) return true;  // another thread has already renewed them
  absl::StatusOr<std::string> token = std::string();
  if (config_.token_source) token = config_.token_source();
  if (!token.ok()) base::log::Warn("getting a new token failed", {{"error", base::ToString(token.status())}});
  {
    base::MutexLock lock(mutex_);
    Snapshot next = *current_;
    if (token.ok() && !token->empty()) next.token = *std::move(token);
    Set(std::move(next));
    if (has_files_) Read();
  }
  return Differs(used);
}

}  // namespace medley::kube
