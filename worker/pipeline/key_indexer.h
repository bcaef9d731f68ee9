// Finds the distinct ids of a step and the position of each id among them.
//
// An open-addressing table finds the distinct ids, a radix sort orders them. Reuses its memory. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker {

class KeyIndexer {
 public:
  // Sets `keys` to the distinct values of `ids`, ascending, and replaces each id by its position in `keys`. No id may
  // be negative.
  void Index(std::span<int32_t> ids, std::vector<uint64_t>& keys);

 private:
  void Sort();

  std::vector<uint64_t> entries_;   // the hash table: (id + 1) << 32 | number in order of appearance; 0: empty
  std::vector<uint64_t> distinct_;  // id << 32 | number
  std::vector<uint64_t> scratch_;
  std::vector<int32_t> rank_;
};

}  // namespace medley::worker
