#include "worker/device/testing/guarded_memory.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "common/base/status.h"

namespace medley::worker::device {
namespace {

constexpr size_t kMostFreed = 256;

// What the handler of SIGSEGV knows: it may not take a lock or allocate.
struct Known {
  std::atomic<uintptr_t> address{0};
  std::atomic<size_t> mapped{0};
  std::atomic<size_t> bytes{0};
  std::atomic<bool> freed{false};
};
constexpr size_t kMostKnown = size_t{1} << 16;
std::array<Known, kMostKnown>& KnownBlocks() {
  static auto* const known = new std::array<Known, kMostKnown>();  // outlives every thread
  return *known;
}
std::atomic<size_t> next_known{0};
struct sigaction before_us;

void SayWhoTouched(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Known& block : KnownBlocks()) {
    const uintptr_t begin = block.address.load();
    if (begin == 0 || address < begin || address >= begin + block.mapped.load()) continue;
    std::array<char, 200> text{};
    const auto end = fmt::format_to_n(text.data(), text.size(),
                                      "host code touched byte {} of a {} block of {} bytes of the device\n",
                                      address - begin, block.freed ? "freed" : "live", block.bytes.load());
    static_cast<void>(!write(STDERR_FILENO, text.data(), std::min(end.size, text.size())));
    std::_Exit(134);
  }
  // None of the device's: as without this handler.
  if ((before_us.sa_flags & SA_SIGINFO) != 0 && before_us.sa_sigaction != nullptr) {
    before_us.sa_sigaction(number, info, context);
    return;
  }
  signal(number, SIG_DFL);
}

void Remember(void* address, size_t mapped, size_t bytes) {
  Known& block = KnownBlocks()[next_known++ % kMostKnown];
  block.address = 0;
  block.mapped = mapped;
  block.bytes = bytes;
  block.freed = false;
  block.address = reinterpret_cast<uintptr_t>(address);
}

void MarkFreed(void* address) {
  for (Known& block : KnownBlocks()) {
    if (block.address.load() == reinterpret_cast<uintptr_t>(address)) block.freed = true;
  }
}

size_t InPages(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (std::max<size_t>(bytes, 1) + page - 1) / page * page;
}

void Protect(void* address, size_t mapped, int how) {
  MEDLEY_CHECK(mprotect(address, mapped, how) == 0, "the pages of a block cannot be protected");
}

}  // namespace

GuardedMemory& GuardedMemory::OfProcess() {
  static auto* const memory = new GuardedMemory();  // tensors may outlive everything else
  return *memory;
}

GuardedMemory::GuardedMemory() {
  struct sigaction action = {};
  action.sa_sigaction = SayWhoTouched;
  action.sa_flags = SA_SIGINFO;
  MEDLEY_CHECK(sigaction(SIGSEGV, &action, &before_us) == 0, "SIGSEGV cannot be handled");
}

absl::StatusOr<void*> GuardedMemory::Allocate(size_t bytes) {
  const std::unique_lock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(Check());
  if (++allocations_ == fails_) {
    fails_ = 0;
    return base::ResourceExhausted(
        "test device out of memory. Tried to allocate {} bytes. It has a total capacity of {} bytes of which 0 bytes "
        "is "
        "free.",
        bytes, used_);
  }
  const size_t mapped = InPages(bytes);
  void* const address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return base::ResourceExhausted("mapping {} bytes failed", mapped);
  std::memset(address, kGuardedPoison, mapped);
  Protect(address, mapped, PROT_NONE);
  Remember(address, mapped, bytes);
  blocks_[address] = {.bytes = bytes,
                      .mapped = mapped,
                      .serial = ++serials_,
                      .recording = recording_.has_value() ? recording_->number : 0};
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return address;
}

void GuardedMemory::Free(void* block) {
  const std::unique_lock lock(mutex_);
  const auto found = blocks_.find(block);
  MEDLEY_CHECK(found != blocks_.end() && !found->second.released, "what is freed is no block of the device");
  MarkFreed(block);
  found->second.released = true;
  if (found->second.recording == 0) FreeNow(found);
}

// Gives the pages back, and keeps their addresses.
void GuardedMemory::FreeNow(std::map<void*, Block>::iterator block) {
  Protect(block->first, block->second.mapped, PROT_NONE);
  madvise(block->first, block->second.mapped, MADV_DONTNEED);
  used_ -= block->second.bytes;
  freed_.emplace_back(block->first, block->second.mapped);
  blocks_.erase(block);
  if (freed_.size() <= kMostFreed) return;
  munmap(freed_.front().first, freed_.front().second);
  freed_.pop_front();
}

std::map<void*, GuardedMemory::Block>::iterator GuardedMemory::BlockOf(const void* address) {
  auto after = blocks_.upper_bound(const_cast<void*>(address));
  if (after == blocks_.begin()) return blocks_.end();
  --after;
  const auto* const begin = static_cast<const std::byte*>(after->first);
  const auto* const at = static_cast<const std::byte*>(address);
  return at < begin + after->second.mapped ? after : blocks_.end();
}

bool GuardedMemory::Opened::Open(const void* address) {
  const auto block = memory_.BlockOf(address);
  if (block == memory_.blocks_.end()) return false;
  memory_.streams_.Use(block->second.uses, block->first);
  if (block->second.opened++ == 0) Protect(block->first, block->second.mapped, PROT_READ | PROT_WRITE);
  memory_.KeepForRecording(block->first, block->second);
  blocks_.push_back(block->first);
  return true;
}

GuardedMemory::Opened::~Opened() {
  for (void* const address : blocks_) {
    const auto block = memory_.blocks_.find(address);
    if (block == memory_.blocks_.end()) continue;  // freed by the kernel
    if (--block->second.opened == 0) Protect(address, block->second.mapped, PROT_NONE);
  }
}

absl::Status GuardedMemory::CheckRange(const void* device, size_t bytes) {
  MEDLEY_RETURN_IF_ERROR(Check());
  const auto block = BlockOf(device);
  if (block == blocks_.end()) return base::Internal("a copy of {} bytes is not within the device's memory", bytes);
  const auto first = static_cast<size_t>(static_cast<const std::byte*>(device) -
                                         static_cast<const std::byte*>(static_cast<const void*>(block->first)));
  if (first + bytes <= block->second.bytes) return absl::OkStatus();
  return base::Internal("a copy of {} bytes at byte {} leaves a block of {} bytes of the device", bytes, first,
                        block->second.bytes);
}

absl::Status GuardedMemory::CopyIn(std::span<const std::byte> from, void* device) {
  Opened opened(*this);
  MEDLEY_RETURN_IF_ERROR(NotRecorded("a copy to the device"));
  if (from.empty()) return Check();
  MEDLEY_RETURN_IF_ERROR(CheckRange(device, from.size()));
  opened.Open(device);
  std::memcpy(device, from.data(), from.size());
  CountIn(from.size());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GuardedMemory::StartCopyIn(std::span<const std::byte> from, void* device,
                                                   const GuardedStreams::Moment& after) {
  const std::unique_lock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(CheckRange(device, from.size()));
  CountIn(from.size());
  // Who copies beside computations is not who records them.
  if (recording_.has_value() && BlockOf(device)->second.recording == recording_->number) {
    BlockOf(device)->second.recording = 0;
  }
  return streams_.Start(BlockOf(device)->first, after, [this, from, device] { DoCopyIn(from, device); });
}

// The block may be freed by now: then nothing that was given waited for the copy.
void GuardedMemory::DoCopyIn(std::span<const std::byte> from, void* device) {
  const auto block = BlockOf(device);
  if (block == blocks_.end()) return streams_.NoteFreed(device);
  streams_.UseByCopy(block->second.uses, block->first);
  if (block->second.opened == 0) Protect(block->first, block->second.mapped, PROT_READ | PROT_WRITE);
  std::memcpy(device, from.data(), from.size());
  if (block->second.opened == 0) Protect(block->first, block->second.mapped, PROT_NONE);
}

absl::Status GuardedMemory::KernelsWait(const GuardedStreams::Moment& moment) {
  const std::unique_lock lock(mutex_);
  streams_.KernelsWait(moment.done[GuardedStreams::kCopies]);
  return Check();
}

absl::Status GuardedMemory::Finish(const GuardedStreams::Moment& moment) {
  const std::unique_lock lock(mutex_);
  streams_.Finish(moment.done[GuardedStreams::kCopies]);
  return Check();
}

GuardedStreams::Moment GuardedMemory::Now() const {
  const std::unique_lock lock(mutex_);
  return streams_.Now();
}

void GuardedMemory::ResetStreams(uint64_t seed, int64_t left_out_wait) {
  const std::unique_lock lock(mutex_);
  streams_.Reset(seed);
  streams_.LeaveOutWait(left_out_wait);
}

int64_t GuardedMemory::waits() const {
  const std::unique_lock lock(mutex_);
  return streams_.waits();
}

absl::Status GuardedMemory::CopyOut(const void* device, std::span<std::byte> to) {
  Opened opened(*this);
  MEDLEY_RETURN_IF_ERROR(NotRecorded("a copy to the host"));
  if (to.empty()) return Check();
  MEDLEY_RETURN_IF_ERROR(CheckRange(device, to.size()));
  opened.Open(device);
  std::memcpy(to.data(), device, to.size());
  CountOut(to.size());
  return absl::OkStatus();
}

void GuardedMemory::CountIn(size_t bytes) {
  const std::unique_lock lock(mutex_);
  counts_.bytes_in += static_cast<int64_t>(bytes);
  ++counts_.calls_in;
}

void GuardedMemory::CountOut(size_t bytes) {
  const std::unique_lock lock(mutex_);
  counts_.bytes_out += static_cast<int64_t>(bytes);
  ++counts_.calls_out;
}

CopyCounts GuardedMemory::counts() const {
  const std::unique_lock lock(mutex_);
  return counts_;
}

void GuardedMemory::FailAllocation(int64_t number) {
  const std::unique_lock lock(mutex_);
  fails_ = number == 0 ? 0 : allocations_ + number;
}

int64_t GuardedMemory::allocations() const {
  const std::unique_lock lock(mutex_);
  return allocations_;
}

void GuardedMemory::SetBroken(bool broken) {
  const std::unique_lock lock(mutex_);
  broken_ = broken;
}

absl::Status GuardedMemory::Check() const {
  const std::unique_lock lock(mutex_);
  if (!streams_.error().empty()) return base::Internal("the test device: {}", streams_.error());
  if (!broken_) return absl::OkStatus();
  return base::Internal("the test device failed: an illegal memory access was encountered");
}

void GuardedMemory::SetTotal(int64_t bytes) {
  const std::unique_lock lock(mutex_);
  total_ = bytes;
}

int64_t GuardedMemory::total() const {
  const std::unique_lock lock(mutex_);
  return total_;
}

size_t GuardedMemory::used() const {
  const std::unique_lock lock(mutex_);
  return used_;
}

size_t GuardedMemory::peak() const {
  const std::unique_lock lock(mutex_);
  return peak_;
}

void GuardedMemory::ResetPeak() {
  const std::unique_lock lock(mutex_);
  peak_ = used_;
}

}  // namespace medley::worker::device
