// Bounds the memory of all requests that wait or run. A quarter of it is left to small requests. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace medley::sched {

class RequestMemory {
 public:
  static constexpr int64_t kSmall = 256 << 10;
  explicit RequestMemory(int64_t bytes) : for_small_(bytes / 4), left_(bytes) {}

  // Bytes that are given back with it. False: there were not enough left.
  class Share {
   public:
    Share(RequestMemory& memory, int64_t bytes) : memory_(memory), bytes_(memory.Take(bytes) ? bytes : -1) {}
    ~Share() {
      if (bytes_ >= 0) memory_.left_ += bytes_;
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    explicit operator bool() const { return bytes_ >= 0; }

   private:
    RequestMemory& memory_;
    const int64_t bytes_;
  };

 private:
  bool Take(int64_t bytes) {
    const int64_t must_be_left = bytes > kSmall ? for_small_ : 0;
    int64_t left = left_;
    while (left >= bytes + must_be_left) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }

  const int64_t for_small_;
  std::atomic<int64_t> left_;
};

}  // namespace medley::sched
