#include "worker/ps/row_slabs.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace medley::worker {
namespace {

constexpr size_t kSlabBytes = size_t{32} << 20;

}  // namespace

RowSlabs::RowSlabs(size_t row_bytes)
    : row_bytes_(row_bytes),
      shift_(static_cast<uint32_t>(std::bit_width(std::max<size_t>(1, kSlabBytes / row_bytes)) - 1)),
      mask_((uint32_t{1} << shift_) - 1) {}

RowSlabs::RowSlabs(RowSlabs&& other) noexcept
    : row_bytes_(other.row_bytes_),
      shift_(other.shift_),
      mask_(other.mask_),
      size_(std::exchange(other.size_, 0)),
      slabs_(std::exchange(other.slabs_, {})) {}

RowSlabs::~RowSlabs() {
  for (std::byte* slab : slabs_) munmap(slab, SlabBytes());
}

void RowSlabs::Append() {
  if ((size_ & mask_) == 0) {
    slabs_.reserve(slabs_.size() + 1);
    void* memory =
        mmap(nullptr, SlabBytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    // Not the first one: a small table would occupy a large page. Advice: without it rows are only slower to find.
    if (!slabs_.empty()) madvise(memory, SlabBytes(), MADV_HUGEPAGE);
    slabs_.push_back(static_cast<std::byte*>(memory));
  }
  ++size_;
}

}  // namespace medley::worker
