// Turns the ids of a step into the distinct rows that it touches and each id's position among them.
//
// An open-addressing table finds the distinct ids, a radix sort orders them. Reuses its memory. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

class KeyIndexer {
 public:
  // `ids` (not negative) become positions in `keys`, which gets the distinct ids, ascending.
  void Index(std::span<int32_t> ids, std::vector<uint64_t>& keys);

 private:
  void Sort();

  std::vector<uint64_t> slots_;     // (id + 1) << 32 | number in order of appearance; 0: free
  std::vector<uint64_t> distinct_;  // id << 32 | number
  std::vector<uint64_t> scratch_;
  std::vector<int32_t> rank_;
};

}  // namespace medley::worker
