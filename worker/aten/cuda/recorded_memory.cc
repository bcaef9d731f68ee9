// The build with CUDA: LibTorch allocates the memory of a GPU.
#include "worker/aten/recorded_memory.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#pragma GCC diagnostic pop

namespace medley::worker::aten {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

class Pool final : public RecordedMemory {
 public:
  Pool(void* stream, c10::DeviceIndex gpu)
      : stream_(static_cast<cudaStream_t>(stream)), gpu_(gpu), pool_(at::cuda::graph_pool_handle()) {}
  ~Pool() override {
    for (int use = 0; use < uses_; ++use) allocator::releasePool(gpu_, pool_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void During(const std::function<void()>& work) override {
    const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromExternal(stream_, gpu_));
    ++uses_;
    allocator::beginAllocateToPool(gpu_, pool_, [this](cudaStream_t stream) { return stream == stream_; });
    const Ended ended{*this};
    work();
  }

 private:
  struct Ended {
    Pool& pool;
    ~Ended() { allocator::endAllocateToPool(pool.gpu_, pool.pool_); }
  };
  const cudaStream_t stream_;
  const c10::DeviceIndex gpu_;
  const c10::MempoolId_t pool_;
  int uses_ = 0;  // each of which holds the pool
};

}  // namespace

// Only for a GPU: no other device of this build records (Recorder).
std::shared_ptr<RecordedMemory> MakeRecordedMemory(const device::Device& device) {
  return std::make_shared<Pool>(device.RecordingStream(), static_cast<c10::DeviceIndex>(device.index()));
}

}  // namespace medley::worker::aten
