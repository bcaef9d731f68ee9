#include "worker/cold/mapped_file.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

namespace medley::worker {
namespace {

// How often this thread has waited for a page from a disk.
int64_t PagesWaitedFor() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

}  // namespace

MappedFile::~MappedFile() {
  for (std::atomic<Chunk*>& each : chunks_) {
    const std::unique_ptr<Chunk> chunk(each.load());
    if (chunk != nullptr) munmap(const_cast<std::byte*>(chunk->memory), size_t{1} << kChunkBits);
  }
}

// The part of a mapping behind the file's end becomes usable when the file grows.
MappedFile::Chunk* MappedFile::Get(size_t number) {
  if (Chunk* const chunk = chunks_[number].load(std::memory_order_acquire)) return chunk;
  base::MutexLock lock(mutex_);
  if (Chunk* const chunk = chunks_[number].load(std::memory_order_acquire)) return chunk;
  void* const memory = mmap(nullptr, size_t{1} << kChunkBits, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor_,
                            static_cast<off_t>(number << kChunkBits));
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, size_t{1} << kChunkBits, MADV_RANDOM);
  auto chunk = std::make_unique<Chunk>();
  chunk->memory = static_cast<const std::byte*>(memory);
  Chunk* const added = chunk.release();
  chunks_[number].store(added, std::memory_order_release);
  return added;
}

void MappedFile::MarkKnown(uint64_t at, size_t size) {
  const uint64_t first = at >> kPageBits, end = (at + size + (uint64_t{1} << kPageBits) - 1) >> kPageBits;
  for (uint64_t page = first; page < end; ++page) {
    const size_t number = page >> (kChunkBits - kPageBits);
    Chunk* const chunk = number < kChunks ? Get(number) : nullptr;
    if (chunk == nullptr) return;
    const size_t in_chunk = page & ((size_t{1} << (kChunkBits - kPageBits)) - 1);
    const uint64_t bit = uint64_t{1} << (in_chunk % 64);
    std::atomic<uint64_t>& word = chunk->known[in_chunk / 64];
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  uint64_t before = end_.load(std::memory_order_relaxed);
  while (before < at + size && !end_.compare_exchange_weak(before, at + size)) {
  }
}

const std::byte* MappedFile::Known(uint64_t at, size_t size) const {
  const size_t number = at >> kChunkBits;
  if (number != (at + size - 1) >> kChunkBits || number >= kChunks) return nullptr;
  const Chunk* const chunk = chunks_[number].load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  const size_t in_chunk = at & ((size_t{1} << kChunkBits) - 1);
  for (size_t page = in_chunk >> kPageBits; page <= (in_chunk + size - 1) >> kPageBits; ++page) {
    if ((chunk->known[page / 64].load(std::memory_order_relaxed) >> (page % 64) & 1) == 0) return nullptr;
  }
  return chunk->memory + in_chunk;
}

void MappedFile::Forget() {
  for (std::atomic<Chunk*>& each : chunks_) {
    Chunk* const chunk = each.load(std::memory_order_acquire);
    if (chunk == nullptr) continue;
    for (std::atomic<uint64_t>& word : chunk->known) word.store(0, std::memory_order_relaxed);
  }
}

bool MappedFile::IsCut() const {
  struct stat is {};
  return fstat(descriptor_, &is) != 0 || static_cast<uint64_t>(is.st_size) < end_.load(std::memory_order_relaxed);
}

// Behind the end of a file that was cut, memory cannot be read.
MappedFile::Check::Check(MappedFile& file) : file_(file), waits_(PagesWaitedFor()) {
  if (file_.IsCut()) file_.Forget();
}
MappedFile::Check::~Check() {
  if (PagesWaitedFor() != waits_) file_.Forget();
}

}  // namespace medley::worker
