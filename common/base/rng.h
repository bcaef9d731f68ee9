// Deterministic random numbers: equal seeds give equal numbers on every platform.
//
// xoshiro256** (Blackman, Vigna 2018), seeded by SplitMix64. Not thread-safe: use one Rng per thread.
#pragma once

#include <array>
#include <cstdint>

namespace medley::base {

// The SplitMix64 finalizer. It mixes 64 bits well and also serves as a counter-based generator.
constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Rng {
 public:
  explicit Rng(uint64_t seed);
  uint64_t Next();
  // Uniform in [0, n); n > 0. Unbiased.
  uint64_t Below(uint64_t n);
  // Uniform in [0, 1), with 53 random bits.
  double Uniform();
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }

 private:
  std::array<uint64_t, 4> state_;
};

// A seed from the operating system. For programs; tests use fixed seeds.
uint64_t SystemSeed();

}  // namespace medley::base
