#include "worker/device/cuda.h"

#include "common/base/status.h"

namespace medley::worker::device {

absl::Status FromCuda(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return base::Internal("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

absl::StatusOr<Stream> Stream::Create() {
  cudaStream_t made = nullptr;
  MEDLEY_RETURN_IF_ERROR(FromCuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "creating a stream"));
  Stream stream;
  stream.stream_.reset(made);
  return stream;
}

absl::StatusOr<Event> Event::Create() {
  cudaEvent_t made = nullptr;
  MEDLEY_RETURN_IF_ERROR(FromCuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "creating an event"));
  Event event;
  event.event_.reset(made);
  return event;
}

absl::Status Event::Record(cudaStream_t stream) {
  return FromCuda(cudaEventRecord(event_.get(), stream), "recording an event");
}

absl::Status Event::HoldUp(cudaStream_t stream) const {
  return FromCuda(cudaStreamWaitEvent(stream, event_.get(), 0), "letting a stream wait for an event");
}

absl::Status Event::Wait() const { return FromCuda(cudaEventSynchronize(event_.get()), "waiting for an event"); }

absl::StatusOr<bool> Event::Passed() const {
  const cudaError_t error = cudaEventQuery(event_.get());
  if (error == cudaErrorNotReady) return false;
  MEDLEY_RETURN_IF_ERROR(FromCuda(error, "asking whether an event has passed"));
  return true;
}

template <>
absl::StatusOr<DeviceBuffer> DeviceBuffer::Create(size_t bytes) {
  DeviceBuffer buffer;
  void* memory = nullptr;
  MEDLEY_RETURN_IF_ERROR(FromCuda(cudaMalloc(&memory, bytes), fmt::format("allocating {} bytes of the GPU", bytes)));
  buffer.memory_.reset(memory);
  buffer.size_ = bytes;
  return buffer;
}

template <>
absl::StatusOr<PinnedBuffer> PinnedBuffer::Create(size_t bytes) {
  PinnedBuffer buffer;
  void* memory = nullptr;
  MEDLEY_RETURN_IF_ERROR(
      FromCuda(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), fmt::format("pinning {} bytes", bytes)));
  buffer.memory_.reset(memory);
  buffer.size_ = bytes;
  return buffer;
}

}  // namespace medley::worker::device
