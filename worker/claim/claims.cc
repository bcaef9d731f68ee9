#include "worker/claim/claims.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <vector>

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
absl::StatusOr<Claim> Read(const Volume& volume, const fs::path& path) {
  const absl::StatusOr<std::string> text = volume.files().ReadWhole(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) return Claim();
  if (!text.ok()) return text.status();
  return Parse(path, *text);
}

bool IsClaim(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

absl::StatusOr<Claim> Claims::Newest() const {
  MEDLEY_ASSIGN_OR_RETURN(const Claim newest, Read(volume_, folder_ / kNewest));
  const absl::StatusOr<std::vector<std::string>> names = volume_.files().List(folder_);
  if (absl::IsNotFound(names.status())) return newest;
  if (!names.ok()) return names.status();
  std::string largest;
  for (const std::string& name : *names) {
    if (!IsClaim(name)) continue;
    if (name.size() > largest.size() || (name.size() == largest.size() && name > largest)) largest = name;
  }
  if (largest.empty()) return newest;
  MEDLEY_ASSIGN_OR_RETURN(const Claim listed, Read(volume_, folder_ / largest));
  return listed.term > newest.term ? listed : newest;
}

absl::Status Claims::Take(const Claim& claim) const {
  MEDLEY_RETURN_IF_ERROR(volume_.files().CreateFolder(folder_));
  const std::string text = fmt::format("{} {}\n", claim.term, claim.address);
  MEDLEY_RETURN_IF_ERROR(volume_.files().WriteAtomic(folder_ / fmt::format("{:08}", claim.term), text));
  MEDLEY_ASSIGN_OR_RETURN(const Claim newest, Newest());
  if (newest.term > claim.term) return Superseded(claim.term, newest);
  return volume_.files().WriteAtomic(folder_ / kNewest, text);
}

absl::Status Claims::Check(int64_t own_term) const {
  MEDLEY_ASSIGN_OR_RETURN(const Claim newest, Newest());
  return newest.term > own_term ? Superseded(own_term, newest) : absl::OkStatus();
}

absl::Status Superseded(int64_t own_term, const Claim& newer) {
  return base::Aborted("the coordinator of term {} at {} leads the job, so this one of term {} stops", newer.term,
                       newer.address, own_term);
}

}  // namespace medley::worker
