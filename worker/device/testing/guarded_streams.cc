#include "worker/device/testing/guarded_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace medley::worker::device {

void GuardedStreams::Reset(uint64_t seed) {
  while (!pending_.empty()) RunNext();
  rng_ = base::Rng(seed);
  left_out_ = 0;
  error_.clear();
}

void GuardedStreams::Note(const char* what, const void* address) {
  if (error_.empty()) error_ = fmt::format("two streams use the block at {}: {}", address, what);
}

void GuardedStreams::RunNext() {
  Copy next = std::move(pending_.front());
  pending_.pop_front();
  for (const int s : {kCompute, kCopies}) {
    auto& knows = knows_[kCopies][static_cast<size_t>(s)];
    knows = std::max(knows, next.after.done[static_cast<size_t>(s)]);
  }
  done_copies_ = next.number;
  next.work();
}

void GuardedStreams::BeginKernel() {
  ++count_[kCompute];
  // A fifth of the kernels finds one copy more done.
  if (!pending_.empty() && rng_.Below(5) == 0) RunNext();
}

void GuardedStreams::Use(Uses& block, const void* address) {
  if (HasCopyTo(address)) Note("a kernel does not wait for a copy", address);
  if (block.last[kCopies] > knows_[kCompute][kCopies]) Note("a kernel does not wait for a copy that is done", address);
  block.last[kCompute] = count_[kCompute];
}

void GuardedStreams::UseByCopy(Uses& block, const void* address) {
  if (block.last[kCompute] > knows_[kCopies][kCompute]) Note("a copy does not wait for a kernel", address);
  block.last[kCopies] = done_copies_;
}

int64_t GuardedStreams::Start(void* block, const Moment& after, std::function<void()> copy) {
  const Moment waits_for = IsLeftOut() ? Moment{} : after;
  pending_.push_back({++count_[kCopies], block, waits_for, std::move(copy)});
  if (rng_.Below(3) == 0) RunNext();
  return count_[kCopies];
}

void GuardedStreams::Finish(int64_t copy) {
  while (!pending_.empty() && pending_.front().number <= copy) RunNext();
}

GuardedStreams::Moment GuardedStreams::Now() const { return {{count_[kCompute], knows_[kCompute][kCopies]}}; }

void GuardedStreams::KernelsWait(int64_t copy) {
  if (IsLeftOut()) return;
  Finish(copy);
  knows_[kCompute][kCopies] = std::max(knows_[kCompute][kCopies], copy);
}

bool GuardedStreams::HasCopyTo(const void* block) const {
  return std::ranges::any_of(pending_, [block](const Copy& copy) { return copy.block == block; });
}

}  // namespace medley::worker::device
