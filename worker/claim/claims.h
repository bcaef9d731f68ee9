// Claims: which coordinator leads the job. Each has a term, which the operator gives it; the largest term that was
// claimed leads, and its coordinator can be reached at the claim's address.
//
// A term may be claimed again: by a container that is started again in its pod, or by a second pod that was given the
// same term by mistake. Each such process has a larger run than those whose claims it has seen, and the larger instance
// decides between two that claimed at once. So all claims are ordered, and two processes never lead together.
//
//   coordinators/00000002-00000001-5f3a   one file for each process: TERM-RUN-INSTANCE; no other one overwrites it
//   coordinators/newest                   the newest claim once more. Shared file systems show changes of a file's
//                                         content at once, but new names only after a while (the attribute cache of
//                                         NFS), so readers look at both. An object store has no such file: it lists
//                                         new objects at once
//
// A coordinator claims before it reads the journal of the one before, and looks for a newer claim after each
// record that it writes, before it acts on it. So either the new one reads the record, or the old one sees the claim
// and stops. Thread-safe: all state is in the files. A call may block for as long as the volume does not answer
// (worker/checkpoint/volume_thread.h).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "worker/checkpoint/files.h"

namespace medley::worker {

// Exit code of a coordinator that does not lead any more, because a newer one claimed the job.
inline constexpr int kSuperseded = 3;

struct Claim {
  int64_t term = 0;      // 0: nobody has claimed the job
  std::string address;   // "host:port"
  int64_t run = 0;       // which process of the term: 1, 2, ...
  std::string instance;  // random per process: letters and digits, or empty
  bool operator==(const Claim&) const = default;
  // Whether this one leads, if both have claimed the job.
  bool IsNewerThan(const Claim& other) const;
};

// "00000002-00000001-5f3a": unique for each claim, and in their order for terms and runs of up to eight digits.
std::string ClaimName(const Claim& claim);
// A claim without an address; nullopt when `name` is not the name of a claim.
std::optional<Claim> ParseClaimName(std::string_view name);

class Claims {
 public:
  // `checkpoint_root`: the checkpoint folder of the job.
  explicit Claims(Volume checkpoint_root) : volume_(std::move(checkpoint_root)), folder_(volume_ / "coordinators") {}

  // The claim that leads. The content of `known`, which the caller has, is not read again. Errors: DataLoss (an
  // unreadable claim), those of the file system.
  absl::StatusOr<Claim> Newest(const Claim& known = {}) const;
  // Between two looks of a process: in an object store each costs a request.
  base::nanoseconds interval() const { return base::seconds(volume_.of_objects() ? 10 : 1); }
  // Claims `term` for a process; returns the claim, with its run, which is on disk then. Errors: Aborted when a newer
  // one exists; those of the file system.
  absl::StatusOr<Claim> Take(int64_t term, const std::string& address, const std::string& instance) const;
  // Newest, for the process that leads: a process that was stopped before it wrote an older claim into the file
  // `newest` may do so later, and this writes the claim that leads again.
  absl::StatusOr<Claim> Renew(const Claim& own) const;
  // OK while nothing newer than `own` is claimed; term 0 is older than every claim. Errors: Aborted when it is;
  // DataLoss, those of the file system.
  absl::Status Check(const Claim& own) const;

 private:
  absl::Status Show(const Claim& claim) const;

  const Volume volume_;
  const std::filesystem::path folder_;
};

// The refusal that Take and Check return.
absl::Status Superseded(const Claim& own, const Claim& newer);

}  // namespace medley::worker
