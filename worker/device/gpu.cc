// The build with CUDA.
#include <algorithm>
#include <cstring>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/device/cuda.h"
#include "worker/device/device.h"
#include "worker/device/nccl.h"

namespace medley::worker::device {
namespace {

constexpr size_t kChunk = size_t{4} << 20;  // bytes of a copy that pass through pinned memory at once
constexpr int kGpu = 0;

// Half of the pinned memory: while one half is copied, the host fills or empties the other.
struct Half {
  PinnedBuffer memory;
  Event copied;
};

absl::StatusOr<Half> MakeHalf() {
  Half half;
  MEDLEY_ASSIGN_OR_RETURN(half.memory, PinnedBuffer::Create(kChunk));
  MEDLEY_ASSIGN_OR_RETURN(half.copied, Event::Create());
  return half;
}

class PinnedMemory final : public HostBuffer {
 public:
  explicit PinnedMemory(PinnedBuffer memory) : memory_(std::move(memory)) {}
  std::span<std::byte> bytes() const override { return memory_.First(memory_.size()); }

 private:
  const PinnedBuffer memory_;
};

class EventMark final : public Mark {
 public:
  static absl::StatusOr<std::shared_ptr<const Mark>> Of(cudaStream_t stream) {
    auto mark = std::make_shared<EventMark>();
    MEDLEY_ASSIGN_OR_RETURN(mark->event_, Event::Create());
    MEDLEY_RETURN_IF_ERROR(mark->event_.Record(stream));
    return mark;
  }
  const Event& event() const { return event_; }

 private:
  Event event_;
};

// A CUDA graph, ready to be launched.
class Graph final : public Recording {
 public:
  static absl::StatusOr<std::unique_ptr<Recording>> Of(cudaGraph_t recorded) {
    cudaGraphExec_t made = nullptr;
    MEDLEY_RETURN_IF_ERROR(FromCuda(cudaGraphInstantiate(&made, recorded, 0), "making a graph of recorded kernels"));
    auto graph = std::make_unique<Graph>();
    graph->graph_.reset(made);
    return graph;
  }
  absl::Status Replay() override {
    return FromCuda(cudaGraphLaunch(graph_.get(), cudaStreamLegacy), "launching recorded kernels");
  }

 private:
  std::unique_ptr<CUgraphExec_st, FreeExecutable> graph_;
};

const Event& EventOf(const Mark& mark) { return static_cast<const EventMark&>(mark).event(); }

class Gpu final : public Device {
 public:
  static absl::StatusOr<std::shared_ptr<Device>> Open() {
    auto gpu = std::make_shared<Gpu>();
    cudaDeviceProp properties{};
    MEDLEY_RETURN_IF_ERROR(FromCuda(cudaSetDevice(kGpu), "choosing the GPU"));
    MEDLEY_RETURN_IF_ERROR(FromCuda(cudaGetDeviceProperties(&properties, kGpu), "asking for the GPU's properties"));
    gpu->name_ = properties.name;
    static_assert(sizeof properties.uuid.bytes == sizeof(DeviceId));
    std::memcpy(gpu->id_.data(), properties.uuid.bytes, gpu->id_.size());
    MEDLEY_ASSIGN_OR_RETURN(gpu->copies_, Stream::Create());
    MEDLEY_ASSIGN_OR_RETURN(gpu->ahead_, Stream::Create());
    MEDLEY_ASSIGN_OR_RETURN(gpu->recorded_, Stream::Create());
    MEDLEY_ASSIGN_OR_RETURN(gpu->before_, Event::Create());
    for (Half& half : gpu->halves_) {
      MEDLEY_ASSIGN_OR_RETURN(half, MakeHalf());
    }
    return gpu;
  }

  std::string name() const override { return name_; }
  DeviceId id() const override { return id_; }
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int index() const override { return kGpu; }
  absl::StatusOr<DeviceMemory> Memory() const override {
    size_t free = 0, total = 0;
    MEDLEY_RETURN_IF_ERROR(FromCuda(cudaMemGetInfo(&free, &total), "asking for the GPU's memory"));
    return DeviceMemory{static_cast<int64_t>(free), static_cast<int64_t>(total)};
  }
  absl::Status Check() const override { return FromCuda(cudaDeviceSynchronize(), "the GPU failed"); }

  absl::Status CopyIn(std::span<const std::byte> from, void* to) override {
    base::MutexLock lock(mutex_);
    MEDLEY_RETURN_IF_ERROR(Begin());
    auto* out = static_cast<std::byte*>(to);
    int next = 0;
    const Half* last = nullptr;
    while (!from.empty()) {
      Half& half = halves_[next];
      const size_t bytes = std::min(from.size(), kChunk);
      MEDLEY_RETURN_IF_ERROR(half.copied.Wait());
      std::memcpy(half.memory.data(), from.data(), bytes);
      MEDLEY_RETURN_IF_ERROR(
          FromCuda(cudaMemcpyAsync(out, half.memory.data(), bytes, cudaMemcpyHostToDevice, copies_.get()),
                   fmt::format("copying {} bytes to the GPU", bytes)));
      MEDLEY_RETURN_IF_ERROR(half.copied.Record(copies_.get()));
      from = from.subspan(bytes);
      out += bytes;
      last = &half;
      next = 1 - next;
    }
    return last == nullptr ? absl::OkStatus() : last->copied.HoldUp(cudaStreamLegacy);
  }

  absl::Status CopyOut(const void* from, std::span<std::byte> to) override {
    base::MutexLock lock(mutex_);
    MEDLEY_RETURN_IF_ERROR(Begin());
    const auto* in = static_cast<const std::byte*>(from);
    std::span<std::byte> arriving;  // in the half that is not `next`
    int next = 0;
    while (!to.empty() || !arriving.empty()) {
      const std::span<std::byte> part = to.first(std::min(to.size(), kChunk));
      if (!part.empty()) {
        Half& half = halves_[next];
        MEDLEY_RETURN_IF_ERROR(half.copied.Wait());  // of a CopyIn before
        MEDLEY_RETURN_IF_ERROR(
            FromCuda(cudaMemcpyAsync(half.memory.data(), in, part.size(), cudaMemcpyDeviceToHost, copies_.get()),
                     fmt::format("copying {} bytes from the GPU", part.size())));
        MEDLEY_RETURN_IF_ERROR(half.copied.Record(copies_.get()));
        in += part.size();
        to = to.subspan(part.size());
      }
      next = 1 - next;
      if (!arriving.empty()) {
        MEDLEY_RETURN_IF_ERROR(halves_[next].copied.Wait());
        std::memcpy(arriving.data(), halves_[next].memory.data(), arriving.size());
      }
      arriving = part;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<HostBuffer>> NewHostBuffer(size_t bytes) override {
    MEDLEY_ASSIGN_OR_RETURN(PinnedBuffer memory, PinnedBuffer::Create(std::max<size_t>(1, bytes)));
    return std::make_unique<PinnedMemory>(std::move(memory));
  }
  absl::StatusOr<std::shared_ptr<const Mark>> MarkCompute() override { return EventMark::Of(cudaStreamLegacy); }
  absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                          const Mark* after) override {
    base::MutexLock lock(mutex_);
    if (after != nullptr) MEDLEY_RETURN_IF_ERROR(EventOf(*after).HoldUp(ahead_.get()));
    MEDLEY_RETURN_IF_ERROR(
        FromCuda(cudaMemcpyAsync(to, from.bytes().data(), bytes, cudaMemcpyHostToDevice, ahead_.get()),
                 fmt::format("copying {} bytes to the GPU beside its computations", bytes)));
    return EventMark::Of(ahead_.get());
  }
  absl::Status ComputeWaits(const Mark& mark) override { return EventOf(mark).HoldUp(cudaStreamLegacy); }
  absl::Status Await(const Mark& mark) override { return EventOf(mark).Wait(); }

  // What other threads do with other streams is not concerned, so threads that copy may go on.
  absl::Status BeginRecording() override {
    return FromCuda(cudaStreamBeginCapture(recorded_.get(), cudaStreamCaptureModeThreadLocal), "recording kernels");
  }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    cudaGraph_t recorded = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(recorded_.get(), &recorded);
    const std::unique_ptr<CUgraph_st, FreeGraph> graph(recorded);
    static_cast<void>(cudaGetLastError());  // of a recording that failed; the next kernel must not meet it
    MEDLEY_RETURN_IF_ERROR(FromCuda(ended, "recording kernels"));
    return Graph::Of(graph.get());
  }
  void* RecordingStream() const override { return recorded_.get(); }

  absl::StatusOr<GroupKey> NewGroupKey() override { return NewNcclKey(); }
  absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinGroup(const GroupKey& key, int rank, int size,
                                                         base::milliseconds timeout, std::stop_token stop) override {
    MEDLEY_RETURN_IF_ERROR(FromCuda(cudaSetDevice(kGpu), "choosing the GPU"));  // of this thread
    return JoinNccl(key, rank, size, timeout, std::move(stop));
  }

 private:
  // The copies wait for what the default stream was given: it may still use the memory.
  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    MEDLEY_RETURN_IF_ERROR(before_.Record(cudaStreamLegacy));
    return before_.HoldUp(copies_.get());
  }

  std::string name_;
  DeviceId id_{};
  Stream recorded_;
  base::Mutex mutex_;
  Stream copies_ ABSL_GUARDED_BY(mutex_);
  Stream ahead_ ABSL_GUARDED_BY(mutex_);  // copies that nothing waits for yet
  Event before_ ABSL_GUARDED_BY(mutex_);
  std::array<Half, 2> halves_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

bool BuiltForGpus() { return true; }

absl::StatusOr<std::shared_ptr<Device>> OpenGpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return base::NotFound("no GPU: {}", cudaGetErrorString(error));
  if (count == 0) return base::NotFound("no GPU: the process sees none");
  if (count > 1) {
    base::log::Warn("the process sees several GPUs and uses the first: a unit should have one",
                    {{"gpus", std::to_string(count)}});
  }
  return Gpu::Open();
}

}  // namespace medley::worker::device
