// Claims: which coordinator leads the job. Each has a term, which the operator gives it; the largest term that was
// claimed leads, and its coordinator can be reached at the claim's address.
//
//   coordinators/00000002   one file for each claim; never overwritten by another term
//   coordinators/newest     the newest claim once more. Shared file systems show changes of a file's content at once,
//                           but new names only after a while (the attribute cache of NFS), so readers look at both
//
// A coordinator claims its term before it reads the journal of the one before, and looks for a newer claim after each
// record that it writes, before it acts on it. So either the new one reads the record, or the old one sees the claim
// and stops. Thread-safe: all state is in the files. A call may block for as long as the volume does not answer
// (worker/checkpoint/volume_thread.h).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "worker/checkpoint/files.h"

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
  explicit Claims(Volume checkpoint_root) : volume_(std::move(checkpoint_root)), folder_(volume_ / "coordinators") {}

  // The claim with the largest term. Errors: DataLoss (an unreadable claim), those of the file system.
  absl::StatusOr<Claim> Newest() const;
  // The claim is on disk when this returns OK. It may be repeated, also with another address. Errors:
  // Aborted when a newer one exists; those of the file system.
  absl::Status Take(const Claim& claim) const;
  // OK while no newer term than `own_term` is claimed; 0 is older than every claim. Errors: Aborted when one is;
  // DataLoss, those of the file system.
  absl::Status Check(int64_t own_term) const;

 private:
  const Volume volume_;
  const std::filesystem::path folder_;
};

// The refusal that Take and Check return.
absl::Status Superseded(int64_t own_term, const Claim& newer);

}  // namespace medley::worker
