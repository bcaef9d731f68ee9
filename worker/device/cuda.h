// CUDA's memory, streams and events as owners, and its errors as absl::Status. Only in the build with CUDA, and only
// for files of worker/device. None is thread-safe.
#pragma once

#include <absl/status/statusor.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace medley::worker::device {

// Internal with `what` and CUDA's text, unless the call succeeded.
absl::Status FromCuda(cudaError_t error, std::string_view what);

struct FreeStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct FreeEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct FreeGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct FreeExecutable {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

// A stream that does not wait for the default stream.
class Stream {
 public:
  static absl::StatusOr<Stream> Create();
  cudaStream_t get() const { return stream_.get(); }

 private:
  std::unique_ptr<CUstream_st, FreeStream> stream_;
};

// A place in a stream.
class Event {
 public:
  static absl::StatusOr<Event> Create();
  // Marks what `stream` has been given so far.
  absl::Status Record(cudaStream_t stream);
  // `stream` goes on when this event has passed.
  absl::Status HoldUp(cudaStream_t stream) const;
  // Returns when it has passed; at once where nothing was recorded.
  absl::Status Wait() const;
  absl::StatusOr<bool> Passed() const;

 private:
  std::unique_ptr<CUevent_st, FreeEvent> event_;
};

// Memory of the GPU, and of the host at an address that the GPU can copy from.
template <typename Free>
class Buffer {
 public:
  static absl::StatusOr<Buffer> Create(size_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  size_t size() const { return size_; }
  std::span<std::byte> First(size_t bytes) const { return {data(), bytes}; }

 private:
  std::unique_ptr<void, Free> memory_;
  size_t size_ = 0;
};
using DeviceBuffer = Buffer<FreeDevice>;
using PinnedBuffer = Buffer<FreePinned>;

}  // namespace medley::worker::device
