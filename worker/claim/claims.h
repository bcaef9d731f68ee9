// Claims: which coordinator leads the job. Each has a term, which the operator gives it; the largest term that was
// claimed leads, and its coordinator can be reached at the claim's address.
//
//   coordinators/00000002   one file for each claim; never overwritten by another term
//   coordinators/newest     the newest claim once more. Shared file systems show changes of a file's content at once,
//                           but new names only after a while (the attribute cache of NFS), so readers look at both
//
// A coordinator claims its term before it reads the journal of the one before, and looks for a newer claim after each
// record that it writes, before it acts on it. So either the new one reads the record, or the old one sees the claim
// and stops. Thread-safe: all state is in the files.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace medley::worker {

// Exit code of a coordinator that does not lead any more, because a newer one claimed the job.
inline constexpr int kSuperseded = 3;

struct Claim {
  int64_t term = 0;     // 0: nobody has claimed the job
  std::string address;  // "host:port"
  bool operator==(const Claim&) const = default;
};

class Claims {
 public:
  // `checkpoint_root`: the checkpoint folder of the job.
  explicit Claims(const std::filesystem::path& checkpoint_root) : folder_(checkpoint_root / "coordinators") {}

  // The claim with the largest term. Errors: DataLoss (an unreadable claim), those of the file system.
  absl::StatusOr<Claim> Newest() const;
  // The claim is on disk when this returns OK. It may be repeated, also with another address. Errors:
  // Aborted when a newer one exists; those of the file system.
  absl::Status Take(const Claim& claim) const;

 private:
  const std::filesystem::path folder_;
};

// The refusal that Take returns.
absl::Status Superseded(int64_t own_term, const Claim& newer);

}  // namespace medley::worker
