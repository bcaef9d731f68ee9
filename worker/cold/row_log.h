// The cold rows of one table as records of equal size in a file: they are only appended, and found by their place.
//
// The file consists of segments of about 1 MiB. Each has a bit for each of its records, which says whether it is live.
// A sealed segment whose last live record becomes another gives its room back to the disk, once nobody reads it.
//
//   record := key u64, hash of key and bytes u64, bytes
//
// Not thread-safe, except Write, all that reads, and Extent.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/cold/mapped_file.h"

namespace medley::worker {

class RowLog {
 public:
  class File;
  // The room of a segment. While anyone has it no other record is written there. Thread-safe.
  class Extent {
   public:
    Extent(std::shared_ptr<File> file, uint32_t number);
    ~Extent();
    Extent(const Extent&) = delete;
    Extent& operator=(const Extent&) = delete;
    uint32_t number() const { return number_; }

   private:
    const std::shared_ptr<File> file_;
    const uint32_t number_;
  };
  struct Segment {
    std::shared_ptr<const Extent> extent;  // null: there is none with this number
    uint32_t used = 0;                     // records, also those that are not live
    uint32_t live = 0;
    std::vector<uint64_t> bits;
    bool IsLive(uint32_t slot) const { return (bits[slot / 64] >> (slot % 64) & 1) != 0; }
  };
  // Room for records that follow each other.
  struct Piece {
    std::shared_ptr<const Extent> extent;
    uint32_t first = 0;  // place
    uint32_t count = 0;
  };

  static constexpr size_t kHeadBytes = 2 * sizeof(uint64_t);

  // Creates the file. Errors: ResourceExhausted, Unavailable.
  static absl::StatusOr<std::unique_ptr<RowLog>> Create(const std::filesystem::path& file, size_t row_bytes);

  size_t row_bytes() const { return record_bytes_ - kHeadBytes; }
  size_t record_bytes() const { return record_bytes_; }
  uint32_t slots() const { return uint32_t{1} << shift_; }  // of a segment
  // Writes a record of record_bytes.
  void Compose(uint64_t key, std::span<const std::byte> bytes, std::byte* record) const;
  static uint64_t KeyOf(const std::byte* record);
  // Whether the record is as Compose wrote it.
  bool IsWhole(const std::byte* record) const;

  // Room behind the last record. Errors: ResourceExhausted (too many segments).
  absl::StatusOr<std::vector<Piece>> Reserve(uint32_t count);
  // Gives back the room of the last Reserve, whose records could not be written.
  void GiveBack(std::span<const Piece> pieces);
  // Errors: ResourceExhausted (the disk is full), Unavailable.
  absl::Status Write(const Piece& piece, std::span<const std::byte> records) const;
  // Reads records that follow each other. Only for a place whose extent the caller has. Errors: DataLoss (the file is
  // shorter), Unavailable.
  absl::Status Read(uint32_t place, std::span<std::byte> records) const;
  // The same without waiting for the disk. False: the records are not in the memory of the system, and now it reads
  // them.
  bool ReadNow(uint32_t place, std::span<std::byte> records) const;
  // The record in the memory of the system, or null where it may not be there. For as long as the caller has its
  // extent, and with a result of CheckMemory from before until after its use.
  const std::byte* InMemory(uint32_t place) const;
  MappedFile::Check CheckMemory() const;

  void SetLive(uint32_t place);
  void SetDead(uint32_t place);
  uint32_t SegmentOf(uint32_t place) const { return place >> shift_; }
  std::shared_ptr<const Extent> ExtentOf(uint32_t place) const { return segments_[SegmentOf(place)].extent; }
  const std::vector<Segment>& segments() const { return segments_; }
  uint32_t PlaceOf(uint32_t segment, uint32_t slot) const { return segment << shift_ | slot; }
  int64_t live() const { return live_; }
  // Records of sealed segments that are not live.
  int64_t garbage() const { return sealed_used_ - sealed_live_; }
  // Gives back the room of a sealed segment without live records.
  void Drop(uint32_t number);
  // The sealed segment with the fewest live records. nullopt: all are live.
  std::optional<uint32_t> Emptiest() const;
  // What it takes on the disk, with what only readers have.
  int64_t bytes() const;

 private:
  RowLog(std::shared_ptr<File> file, size_t record_bytes, uint32_t shift)
      : file_(std::move(file)), record_bytes_(record_bytes), shift_(shift) {}
  void Seal();

  const std::shared_ptr<File> file_;
  const size_t record_bytes_;
  const uint32_t shift_;
  std::vector<Segment> segments_;  // by number
  std::optional<uint32_t> head_;   // the segment that is appended to
  int64_t live_ = 0, sealed_used_ = 0, sealed_live_ = 0;
};

}  // namespace medley::worker
