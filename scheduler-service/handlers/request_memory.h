// Bounds the memory of all requests that wait or run, and gives memory back to the system. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace medley::sched {

class RequestMemory {
 public:
  explicit RequestMemory(int64_t bytes) : left_(bytes) {}

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
    if (left_.fetch_sub(bytes) >= bytes) return true;
    left_ += bytes;
    return false;
  }

  std::atomic<int64_t> left_;
};

}  // namespace medley::sched
