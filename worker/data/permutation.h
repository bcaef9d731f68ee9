// The order of samples in a data epoch: a pseudo-random permutation with random access and without storage.
//
// A four-round Feistel network over the next even power of two with cycle walking (Black and Rogaway, "Ciphers with
// arbitrary finite domains", 2002), keyed by (seed, data epoch). So a position means the same sample for every trainer.
// Immutable, thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace medley::worker {

class Permutation {
 public:
  // rows > 0.
  Permutation(int64_t rows, uint64_t seed, int64_t data_epoch);

  // The row at `position`, 0 <= position < rows. A bijection of [0, rows).
  int64_t operator()(int64_t position) const;
  // The inverse: the position of `row`.
  int64_t PositionOf(int64_t row) const;

 private:
  uint64_t Encrypt(uint64_t value) const;
  uint64_t Decrypt(uint64_t value) const;

  uint64_t rows_;
  int half_bits_;
  std::array<uint64_t, 4> keys_;
};

}  // namespace medley::worker
