// A growing array whose elements never move: it grows by one block and copies no element. So neither the time nor the
// memory of an append depends on the size (except for a pointer per block). Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace medley::worker {

template <typename T>
class BlockVector {
 public:
  size_t size() const { return size_; }
  T& operator[](size_t at) { return blocks_[at / kBlock][at % kBlock]; }
  const T& operator[](size_t at) const { return blocks_[at / kBlock][at % kBlock]; }
  void push_back(const T& value) {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<T[]>(kBlock));
    (*this)[size_++] = value;
  }

 private:
  static constexpr size_t kBlock = 4096;
  std::vector<std::unique_ptr<T[]>> blocks_;
  size_t size_ = 0;
};

}  // namespace medley::worker
