#include "worker/device/nccl.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "common/base/status.h"
#include "worker/device/cuda.h"

namespace medley::worker::device {
namespace {

constexpr size_t kChunk = (size_t{4} << 20) / sizeof(float);  // values that are copied, added and copied back at once
constexpr int kSpins = 2000;                                  // looks before a wait begins to sleep
constexpr std::chrono::microseconds kNap{50};

absl::Status FromNccl(ncclResult_t result, std::string_view what, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const char* const more = comm == nullptr ? "" : ncclGetLastError(comm);
  return base::Unavailable("{}: {}{}{}", what, ncclGetErrorString(result), *more == '\0' ? "" : ": ", more);
}

// Waits until `done` is true, or an error, Unavailable included, ends it.
template <typename Done>
absl::Status Await(std::string_view what, base::milliseconds timeout, const Done& done) {
  base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + timeout;
  for (int look = 0;; ++look) {
    MEDLEY_ASSIGN_OR_RETURN(const bool ready, done());
    if (ready) return absl::OkStatus();
    if (clock.Steady() >= deadline) return base::DeadlineExceeded("{}: not within {} ms", what, timeout.count());
    if (look < kSpins) {
      std::this_thread::yield();
    } else {
      clock.SleepFor(kNap, {});
    }
  }
}

// A part of the values on its way to the GPU and back.
struct Slot {
  PinnedBuffer host;
  DeviceBuffer device;
  Stream stream;
  Event done;
  std::span<float> values;  // where the sums go; empty: the slot is free
};

class NcclGroup final : public DeviceGroup {
 public:
  ~NcclGroup() override {
    // Not ncclCommDestroy: it waits for the other ranks.
    if (comm_ != nullptr) ncclCommAbort(comm_);
  }

  absl::Status Join(const GroupKey& key, int rank, int size, base::milliseconds timeout, const std::stop_token& stop) {
    for (Slot& slot : slots_) {
      MEDLEY_ASSIGN_OR_RETURN(slot.host, PinnedBuffer::Create(kChunk * sizeof(float)));
      MEDLEY_ASSIGN_OR_RETURN(slot.device, DeviceBuffer::Create(kChunk * sizeof(float)));
      MEDLEY_ASSIGN_OR_RETURN(slot.stream, Stream::Create());
      MEDLEY_ASSIGN_OR_RETURN(slot.done, Event::Create());
    }
    ncclUniqueId id;
    static_assert(sizeof id == sizeof(GroupKey));
    std::memcpy(&id, key.data(), sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    MEDLEY_RETURN_IF_ERROR(
        FromNccl(ncclCommInitRankConfig(&comm_, size, id, rank, &config), "joining a group of GPUs", comm_));
    return Await("joining a group of GPUs", timeout, [&]() -> absl::StatusOr<bool> {
      if (stop.stop_requested()) return base::Cancelled("joining a group of GPUs was stopped");
      return Ready("joining a group of GPUs");
    });
  }

  absl::Status Sum(std::span<float> values, base::milliseconds timeout) override {
    const absl::Status status = SumChunks(values, timeout);
    if (status.ok()) return status;
    // Copies that still run write only to the slots. NCCL's kernels end when the group is aborted.
    for (Slot& slot : slots_) slot.values = {};
    const bool asked = aborted_.exchange(true);
    if (ncclComm_t comm = std::exchange(comm_, nullptr); comm != nullptr) ncclCommAbort(comm);
    return asked ? base::Aborted("the group of GPUs was aborted") : status;
  }

  void Abort() override { aborted_ = true; }

 private:
  absl::Status SumChunks(std::span<float> values, base::milliseconds timeout) {
    if (aborted_ || comm_ == nullptr) return base::Aborted("the group of GPUs was aborted");
    for (size_t next = 0; !values.empty(); next = (next + 1) % slots_.size()) {
      Slot& slot = slots_[next];
      MEDLEY_RETURN_IF_ERROR(Empty(slot, timeout));
      slot.values = values.first(std::min(values.size(), kChunk));
      values = values.subspan(slot.values.size());
      MEDLEY_RETURN_IF_ERROR(Fill(slot, timeout));
    }
    for (Slot& slot : slots_) MEDLEY_RETURN_IF_ERROR(Empty(slot, timeout));
    return absl::OkStatus();
  }

  absl::Status Fill(Slot& slot, base::milliseconds timeout) {
    const size_t bytes = slot.values.size_bytes();
    std::memcpy(slot.host.data(), slot.values.data(), bytes);
    MEDLEY_RETURN_IF_ERROR(FromCuda(
        cudaMemcpyAsync(slot.device.data(), slot.host.data(), bytes, cudaMemcpyHostToDevice, slot.stream.get()),
        "copying values to the GPU"));
    const std::string_view what = "adding over GPUs";
    MEDLEY_RETURN_IF_ERROR(FromNccl(ncclAllReduce(slot.device.data(), slot.device.data(), slot.values.size(), ncclFloat,
                                                  ncclSum, comm_, slot.stream.get()),
                                    what, comm_));
    // A group that does not block may still be giving the kernel to the stream.
    MEDLEY_RETURN_IF_ERROR(Await(what, timeout, [&] { return Ready(what); }));
    MEDLEY_RETURN_IF_ERROR(FromCuda(
        cudaMemcpyAsync(slot.host.data(), slot.device.data(), bytes, cudaMemcpyDeviceToHost, slot.stream.get()),
        "copying sums from the GPU"));
    return slot.done.Record(slot.stream.get());
  }

  // Returns when the slot's sums have arrived where they belong.
  absl::Status Empty(Slot& slot, base::milliseconds timeout) {
    if (slot.values.empty()) return absl::OkStatus();
    MEDLEY_RETURN_IF_ERROR(Await("adding over GPUs", timeout, [&] { return Added(slot); }));
    std::memcpy(slot.values.data(), slot.host.data(), slot.values.size_bytes());
    slot.values = {};
    return absl::OkStatus();
  }

  // Whether the slot's sums are in the host's memory.
  absl::StatusOr<bool> Added(const Slot& slot) {
    MEDLEY_RETURN_IF_ERROR(Ready("adding over GPUs").status());  // a rank that failed is found here
    return slot.done.Passed();
  }

  // Whether the last call of NCCL has ended.
  absl::StatusOr<bool> Ready(std::string_view what) {
    if (aborted_) return base::Aborted("the group of GPUs was aborted");
    ncclResult_t state = ncclSuccess;
    MEDLEY_RETURN_IF_ERROR(FromNccl(ncclCommGetAsyncError(comm_, &state), what, comm_));
    MEDLEY_RETURN_IF_ERROR(FromNccl(state, what, comm_));
    return state == ncclSuccess;
  }

  ncclComm_t comm_ = nullptr;  // of the thread that calls Sum
  std::array<Slot, 2> slots_;
  std::atomic<bool> aborted_{false};
};

}  // namespace

absl::StatusOr<GroupKey> NewNcclKey() {
  ncclUniqueId id;
  MEDLEY_RETURN_IF_ERROR(FromNccl(ncclGetUniqueId(&id), "making the key of a group of GPUs"));
  GroupKey key;
  std::memcpy(key.data(), &id, key.size());
  return key;
}

absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinNccl(const GroupKey& key, int rank, int size,
                                                      base::milliseconds timeout, std::stop_token stop) {
  auto group = std::make_unique<NcclGroup>();
  MEDLEY_RETURN_IF_ERROR(group->Join(key, rank, size, timeout, stop));
  return group;
}

}  // namespace medley::worker::device
