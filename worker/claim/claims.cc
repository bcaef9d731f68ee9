#include "worker/claim/claims.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxBytes = 1024;
constexpr char kNewest[] = "newest";

// "2 10.0.0.7:7070"
absl::StatusOr<Claim> Parse(const fs::path& path, const std::string& text) {
  Claim claim;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), claim.term);
  const char* const last = text.data() + text.size();
  if (error != std::errc() || claim.term < 1 || end == last || *end != ' ') {
    return base::DataLoss("{}: expected a term and an address, found '{}'", path.string(), text);
  }
  claim.address.assign(end + 1, last);
  if (!claim.address.empty() && claim.address.back() == '\n') claim.address.pop_back();
  return claim;
}

// Term 0 when the file does not exist.
absl::StatusOr<Claim> Read(const fs::path& path) {
  const absl::StatusOr<std::string> text = base::ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) return Claim();
  if (!text.ok()) return text.status();
  return Parse(path, *text);
}

bool IsClaim(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

absl::StatusOr<Claim> Claims::Newest() const {
  MEDLEY_ASSIGN_OR_RETURN(Claim newest, Read(folder_ / kNewest));
  std::error_code error;
  std::string largest;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (IsClaim(name) && (name.size() > largest.size() || (name.size() == largest.size() && name > largest))) {
      largest = std::move(name);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(error.value(), "listing " + folder_.string());
  }
  if (largest.empty()) return newest;
  MEDLEY_ASSIGN_OR_RETURN(const Claim listed, Read(folder_ / largest));
  return listed.term > newest.term ? listed : newest;
}

absl::Status Claims::Take(const Claim& claim) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return base::ErrnoStatus(error.value(), "creating " + folder_.string());
  const std::string text = fmt::format("{} {}\n", claim.term, claim.address);
  MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / fmt::format("{:08}", claim.term), text));
  MEDLEY_ASSIGN_OR_RETURN(const Claim newest, Newest());
  if (newest.term > claim.term) return Superseded(claim.term, newest);
  return base::WriteFileAtomic(folder_ / kNewest, text);
}

absl::Status Superseded(int64_t own_term, const Claim& newer) {
  return base::Aborted("the coordinator of term {} at {} leads the job, so this one of term {} stops", newer.term,
                       newer.address, own_term);
}

}  // namespace medley::worker
