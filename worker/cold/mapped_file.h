// Reads of a file through a mapping of it, for pages of which it is known that the system has them in memory: a copy in
// place of a call of the system. The other pages are left to the caller, who can ask for many of them at a time.
//
// A page is known when it was written or read lately. The system may take it back meanwhile: then its next use waits
// for the disk, and Check, which finds that out, forgets all pages. Mapped pages count as resident memory of the
// process; the system takes them back as those of any file. Thread-safe. An error of the disk while a page is read
// again is a signal that ends the process (SIGBUS).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/mutex.h"

namespace medley::worker {

class MappedFile {
 public:
  // `descriptor`: of a file that is open for as long as this exists.
  explicit MappedFile(int descriptor) : descriptor_(descriptor) {}
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  // Says that the system has these bytes of the file in memory now.
  void MarkKnown(uint64_t at, size_t size);
  // The bytes, if all their pages are known; else null. Valid while nobody punches a hole there.
  const std::byte* Known(uint64_t at, size_t size) const;

  // Around uses of what Known returned, in one thread.
  class Check {
   public:
    explicit Check(MappedFile& file);
    ~Check();

   private:
    MappedFile& file_;
    const int64_t waits_;
  };

 private:
  static constexpr uint32_t kPageBits = 12, kChunkBits = 30;
  static constexpr size_t kChunks = 1024;  // what is behind them is never known
  struct Chunk {
    const std::byte* memory = nullptr;
    std::array<std::atomic<uint64_t>, (size_t{1} << (kChunkBits - kPageBits)) / 64> known{};
  };
  bool IsCut() const;
  Chunk* Get(size_t number);
  void Forget();

  const int descriptor_;
  std::atomic<uint64_t> end_ = 0;                      // of what was known
  base::Mutex mutex_;                                  // of who adds a chunk
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};  // owned
};

}  // namespace medley::worker
