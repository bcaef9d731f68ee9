// Memory for rows of one size that never move: slabs of at most 32 MiB (one row, if that is larger), which the kernel
// fills with zeros page by page when they are first written. So an unused part costs nothing, and no row is copied when
// there are more. Large tables get pages of 2 MiB where the kernel has them. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace medley::worker {

class RowSlabs {
 public:
  // `row_bytes` > 0: of each row, a multiple of 8.
  explicit RowSlabs(size_t row_bytes);
  ~RowSlabs();
  RowSlabs(RowSlabs&& other) noexcept;
  RowSlabs(const RowSlabs&) = delete;

  uint32_t size() const { return size_; }
  size_t row_bytes() const { return row_bytes_; }
  // Appends a row of zeros. Throws std::bad_alloc when the system has no memory.
  void Append();
  // The bytes of a row, 0 <= row < size().
  std::byte* Row(uint32_t row) const { return slabs_[row >> shift_] + (row & mask_) * row_bytes_; }

 private:
  size_t SlabBytes() const { return (size_t{mask_} + 1) * row_bytes_; }

  const size_t row_bytes_;
  uint32_t shift_ = 0;  // rows of a slab: 2^shift_
  uint32_t mask_ = 0;   // rows of a slab - 1
  uint32_t size_ = 0;
  std::vector<std::byte*> slabs_;
};

}  // namespace medley::worker
