// A buffer of float32 that starts at a cache line boundary. Its values are zero at first. Move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace medley::worker {

class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(size_t size) { Grow(size); }

  // Makes room for at least `size` floats. When the buffer grows, its old values are lost and all values are zero. A
  // large buffer takes memory only where it is written to, because the system gives pages of zeros.
  void Grow(size_t size) {
    if (size <= size_) return;
    memory_.reset(std::calloc(size * sizeof(float) + kAlignment, 1));
    if (memory_ == nullptr) throw std::bad_alloc();
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    data_ = reinterpret_cast<float*>((address + kAlignment - 1) / kAlignment * kAlignment);
    size_ = size;
  }
  float* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<float> First(size_t count) const { return {data_, count}; }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  float* data_ = nullptr;  // within memory_
  size_t size_ = 0;
};

}  // namespace medley::worker
