#include "worker/claim/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>
#include <tuple>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxBytes = 1024;
constexpr char kNewest[] = "newest";

// "00000002-00000001-5f3a 10.0.0.7:7070"
absl::StatusOr<Claim> Parse(const fs::path& path, std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t space = text.find(' ');
  std::optional<Claim> claim = space == std::string::npos ? std::nullopt : ParseClaimName(text.substr(0, space));
  if (!claim) return base::DataLoss("{}: expected a claim and an address, found '{}'", path.string(), text);
  claim->address = text.substr(space + 1);
  return *std::move(claim);
}

std::string Text(const Claim& claim) { return fmt::format("{} {}\n", ClaimName(claim), claim.address); }

// Takes a number and a following '-' from `text`. The number is negative when there is none.
int64_t TakeNumber(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '-') return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

// Term 0 when the file does not exist.
absl::StatusOr<Claim> Read(const Volume& volume, const fs::path& path) {
  absl::StatusOr<std::string> text = volume.files().ReadWhole(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) return Claim();
  if (!text.ok()) return text.status();
  return Parse(path, *std::move(text));
}

}  // namespace

bool Claim::IsNewerThan(const Claim& other) const {
  return std::tie(term, run, instance) > std::tie(other.term, other.run, other.instance);
}

std::string ClaimName(const Claim& claim) {
  return fmt::format("{:08}-{:08}-{}", claim.term, claim.run, claim.instance);
}

std::optional<Claim> ParseClaimName(std::string_view name) {
  Claim claim;
  claim.term = TakeNumber(name);
  claim.run = TakeNumber(name);
  claim.instance = name;
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  if (claim.term < 1 || claim.run < 1 || !plain) return std::nullopt;
  return claim;
}

absl::StatusOr<Claim> Claims::Newest(const Claim& known) const {
  Claim newest;
  // A store lists a new object at once, and an overwritten one may be that of a request which came late.
  if (!volume_.of_objects()) {
    MEDLEY_ASSIGN_OR_RETURN(newest, Read(volume_, folder_ / kNewest));
  }
  const absl::StatusOr<std::vector<std::string>> names = volume_.files().List(folder_);
  if (absl::IsNotFound(names.status())) return newest;
  if (!names.ok()) return names.status();
  Claim largest;
  for (const std::string& name : *names) {
    if (const auto claim = ParseClaimName(name); claim && claim->IsNewerThan(largest)) largest = *claim;
  }
  if (!largest.IsNewerThan(newest)) return newest;
  if (known.term > 0 && ClaimName(largest) == ClaimName(known)) return known;
  MEDLEY_ASSIGN_OR_RETURN(Claim listed, Read(volume_, folder_ / ClaimName(largest)));
  return listed.term > 0 ? listed : largest;  // removed meanwhile, after a newer one of its term
}

absl::StatusOr<Claim> Claims::Take(int64_t term, const std::string& address, const std::string& instance) const {
  MEDLEY_RETURN_IF_ERROR(volume_.files().CreateFolder(folder_));
  MEDLEY_ASSIGN_OR_RETURN(const Claim before, Newest());
  Claim claim{term, address, before.term == term ? before.run + 1 : 1, instance};
  if (before.term > term) return Superseded(claim, before);
  MEDLEY_RETURN_IF_ERROR(volume_.files().WriteAtomic(folder_ / ClaimName(claim), Text(claim)));
  MEDLEY_ASSIGN_OR_RETURN(const Claim newest, Newest());
  if (newest.IsNewerThan(claim)) return Superseded(claim, newest);
  MEDLEY_RETURN_IF_ERROR(Show(claim));
  MEDLEY_ASSIGN_OR_RETURN(const Claim after, Newest());
  if (after.IsNewerThan(claim)) {
    MEDLEY_RETURN_IF_ERROR(Show(after));
    return Superseded(claim, after);
  }
  // Best effort: a pod that is started again and again leaves one file.
  if (before.term == term) (void)volume_.files().Remove(folder_ / ClaimName(before));
  return claim;
}

absl::StatusOr<Claim> Claims::Renew(const Claim& own) const {
  MEDLEY_ASSIGN_OR_RETURN(Claim newest, Newest(own));
  if (newest != own || own.term == 0 || volume_.of_objects()) return newest;
  MEDLEY_ASSIGN_OR_RETURN(const Claim shown, Read(volume_, folder_ / kNewest));
  if (own.IsNewerThan(shown)) MEDLEY_RETURN_IF_ERROR(volume_.files().WriteAtomic(folder_ / kNewest, Text(own)));
  return newest;
}

absl::Status Claims::Show(const Claim& claim) const {
  return volume_.of_objects() ? absl::OkStatus() : volume_.files().WriteAtomic(folder_ / kNewest, Text(claim));
}

absl::Status Claims::Check(const Claim& own) const {
  MEDLEY_ASSIGN_OR_RETURN(const Claim newest, Newest(own));
  return newest.IsNewerThan(own) ? Superseded(own, newest) : absl::OkStatus();
}

absl::Status Superseded(const Claim& own, const Claim& newer) {
  if (newer.term == own.term) {
    return base::Aborted("another process of term {} at {} leads the job, so this one stops", newer.term,
                         newer.address);
  }
  return base::Aborted("the coordinator of term {} at {} leads the job, so this one of term {} stops", newer.term,
                       newer.address, own.term);
}

}  // namespace medley::worker
