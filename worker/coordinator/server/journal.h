// The coordinator's journal: a file of records, of which only the last complete one matters (docs/design/runtime.md,
// "Coordinator restart").
//
// Every process that claimed the job has a file of its own, journal-CLAIM (ClaimName), so that whatever a former one
// still writes touches no other's record (docs/adr/0015-the-coordinator-moves.md); without a term it is `journal`.
//
// In an object store nothing can be appended, and a request that comes late may overwrite a newer object. So each
// record is an object of its own there, journal-CLAIM.00000001, .00000002 and so on, of which the last two are kept.
//
//   record := length u32  crc32 u32 (zlib, of the bytes)  bytes (a serialised CoordinatorState), little-endian
//
// Not thread-safe: the engine calls it in its thread for the journal.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "medley/job/v1/journal.pb.h"
#include "worker/checkpoint/files.h"
#include "worker/claim/claims.h"

namespace medley::worker {

class Journal {
 public:
  // Creates the folder if necessary, reads the journal of the newest claim up to `own` that has a complete record
  // (dropping an incomplete last one), writes that record to the journal of `own`, opens it for appending and removes
  // the older ones. A coordinator with a term must have taken `own` (Claims::Take).
  static absl::StatusOr<std::unique_ptr<Journal>> Open(Volume volume, const Claim& own = {});
  ~Journal();

  // The state that Open read; nullopt for a new journal.
  const std::optional<job::v1::CoordinatorState>& restored() const { return restored_; }
  // The record is on disk when this returns OK. A full volume has room in journal.reserve, a file of zeros.
  // Errors: ResourceExhausted: the volume has no room at all; a later call may succeed.
  absl::Status Append(const job::v1::CoordinatorState& state);

 private:
  Journal(Volume volume, const std::string& name) : volume_(std::move(volume)), path_(volume_ / name) {}
  absl::Status WriteObject(const job::v1::CoordinatorState& state);
  absl::Status Compact(const job::v1::CoordinatorState& state);
  absl::Status Reopen();
  absl::Status Write(const std::string& record);
  absl::Status WriteWithReserve(const job::v1::CoordinatorState& state);
  void KeepReserve();

  const Volume volume_;
  const std::filesystem::path path_;
  std::optional<job::v1::CoordinatorState> restored_;
  int fd_ = -1;
  int64_t bytes_ = 0;   // whole records in the file
  int64_t number_ = 0;  // of the last object that was tried
  bool reserve_ = false;
};

}  // namespace medley::worker
