// A buffer of float32 that starts at a cache line boundary. Its values are zero at first. Move-only.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace medley::worker {

class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(size_t size) { Grow(size); }

  // Makes room for at least `size` floats. When the buffer grows, its old values are lost and all values are zero.
  void Grow(size_t size) {
    if (size <= size_) return;
    const size_t bytes = (size * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::fill_n(data_.get(), size, 0.0F);
    size_ = size;
  }
  float* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<float> First(size_t count) const { return {data_.get(), count}; }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
  size_t size_ = 0;
};

}  // namespace medley::worker
