// The order in which the test device does its work: a stream of kernels, which are done at once, and a stream of
// copies, which are done later: at a moment that a seed chooses, or when something waits for them.
//
// So work that should wait for a copy and does not meets the old bytes, on some seeds. Independently of the seed it is
// noted when both streams use a block and no mark between them says which comes first (a clock for each stream, as race
// detectors have them): error() names the first such use. One wait can be left out, to show that this is found.
// Not thread-safe: GuardedMemory calls it under its lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "common/base/rng.h"

namespace medley::worker::device {

class GuardedStreams {
 public:
  enum Stream { kCompute = 0, kCopies = 1 };

  // What both streams have done before a moment.
  struct Moment {
    std::array<int64_t, 2> done{};  // by stream
  };
  // The last uses of a block.
  struct Uses {
    std::array<int64_t, 2> last{};  // by stream; 0: none
  };

  // The seed of the moments; from then on error() is empty.
  void Reset(uint64_t seed);
  // The `number`-th wait from now on is left out, 1 for the next; 0: none.
  void LeaveOutWait(int64_t number) { left_out_ = number == 0 ? 0 : waits_ + number; }
  int64_t waits() const { return waits_; }  // so far
  const std::string& error() const { return error_; }

  // A kernel begins. It may find copies done.
  void BeginKernel();
  // It uses a block.
  void Use(Uses& block, const void* address);

  // Gives the stream of copies a copy to a block, which it does after `after`. Returns its number.
  int64_t Start(void* block, const Moment& after, std::function<void()> copy);
  // The copies up to this number are done.
  void Finish(int64_t copy);
  Moment Now() const;
  // Kernels from now on wait for this copy.
  void KernelsWait(int64_t copy);
  bool HasCopyTo(const void* block) const;
  // A copy is done whose block was freed.
  void NoteFreed(const void* address) { Note("it was freed while a copy to it was under way", address); }
  // A copy uses a block, while it is done.
  void UseByCopy(Uses& block, const void* address);

 private:
  struct Copy {
    int64_t number = 0;
    void* block = nullptr;
    Moment after;
    std::function<void()> work;
  };
  bool IsLeftOut() { return ++waits_ == left_out_; }
  void RunNext();
  void Note(const char* what, const void* address);

  base::Rng rng_{1};
  std::array<int64_t, 2> count_{};                 // of kernels, and of copies that were given
  std::array<std::array<int64_t, 2>, 2> knows_{};  // by stream: what it knows to be done, by stream
  std::deque<Copy> pending_;
  int64_t done_copies_ = 0;
  int64_t waits_ = 0, left_out_ = 0;
  std::string error_;
};

}  // namespace medley::worker::device
