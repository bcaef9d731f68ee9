// The GPU that a process computes on: copies between its memory and the host's, and sums over GPUs.
//
// One process uses one GPU, the first that it sees (CUDA_VISIBLE_DEVICES; Kubernetes shows a container only its own).
// Needs no header of CUDA. A build without CUDA (any preset but `cuda`) has no GPU, and OpenGpu says so.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

namespace medley::worker::device {

// What names a group of GPUs to its members, and what names a GPU. Bytes without meaning to others.
using GroupKey = std::array<std::byte, 128>;
using DeviceId = std::array<std::byte, 16>;

// Sums over the GPUs of several processes. One thread at a time calls Sum; any thread may call Abort.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  // Replaces `values`, in the host's memory, with their sums over all ranks, which call it in the same order. Every
  // rank gets the same bits. Errors: Unavailable when a rank fails, DeadlineExceeded after `timeout`, Aborted; then the
  // group can no longer be used.
  virtual absl::Status Sum(std::span<float> values, base::milliseconds timeout) = 0;
  // Makes running and later calls fail with Aborted. Idempotent.
  virtual void Abort() = 0;
};

// Bytes of a GPU. Other processes on it count as used.
struct DeviceMemory {
  int64_t free = 0;
  int64_t total = 0;
};

// Memory of the host that the device reads and writes by itself, while the host does other work.
class HostBuffer {
 public:
  virtual ~HostBuffer() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

// A place in the order of the work that a device was given: what came before it. Passed to the device that made it.
class Mark {
 public:
  virtual ~Mark() = default;
};

// Kernels that a device was given once and does again: the same, with the same arguments, on the same memory. So
// whoever does it again must know that this memory was neither freed nor moved; a GPU does not notice.
class Recording {
 public:
  virtual ~Recording() = default;
  // Gives the default stream all of them at once. Errors: Internal with CUDA's text.
  virtual absl::Status Replay() = 0;
};

// How LibTorch names the device that holds its tensors.
enum class DeviceKind {
  kHost,  // none: its memory is the host's, which some tests use
  kCuda,
  kTest,  // memory apart from the host's, on a machine without a GPU (testing/guarded_device.h)
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "NVIDIA H100 80GB HBM3"
  virtual DeviceId id() const = 0;       // different from that of every other GPU
  virtual DeviceKind kind() const = 0;
  virtual int index() const = 0;  // among those of its kind that the process sees

  virtual absl::StatusOr<DeviceMemory> Memory() const = 0;
  // Waits for what the GPU was given. Errors: Internal when the GPU can do nothing more for this process, as after an
  // assertion in a kernel or an access outside its memory: only another process can use it again.
  virtual absl::Status Check() const = 0;

  // Copies through pinned memory, on a stream of its own that waits for what the default stream was given before.
  // CopyIn returns when `from` may be changed; what the default stream is given later sees the copy. CopyOut returns
  // when `to` is complete. Errors: Internal with CUDA's text.
  virtual absl::Status CopyIn(std::span<const std::byte> from, void* to) = 0;
  virtual absl::Status CopyOut(const void* from, std::span<std::byte> to) = 0;

  // Copies beside what the device computes, on a stream of their own: nothing waits for them unless it must.
  virtual absl::StatusOr<std::unique_ptr<HostBuffer>> NewHostBuffer(size_t bytes) = 0;
  // All that the default stream was given so far.
  virtual absl::StatusOr<std::shared_ptr<const Mark>> MarkCompute() = 0;
  // Begins to copy the first `bytes` of `from` when `after` has passed (null: at once), behind earlier copies of this
  // kind. Until the returned mark has passed, `from` may not be changed and `to` not be used.
  virtual absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                                  const Mark* after) = 0;
  // What the default stream is given from now on waits for `mark`.
  virtual absl::Status ComputeWaits(const Mark& mark) = 0;
  // The caller waits for `mark`.
  virtual absl::Status Await(const Mark& mark) = 0;

  // Until EndRecording the device keeps what RecordingStream() is given, and does none of it. One recording at a time;
  // copies of this class are not part of it, and CopyIn and CopyOut may not be called meanwhile.
  virtual absl::Status BeginRecording() = 0;
  // By the thread that began, also after an error. Errors: Internal when the device was given something that it cannot
  // record; then it goes on as if nothing had been recorded.
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() = 0;
  // As the device's own library names streams. Null: the device has one stream, or cannot record.
  virtual void* RecordingStream() const = 0;

  // A key for JoinGroup, made by one rank and sent to all.
  virtual absl::StatusOr<GroupKey> NewGroupKey() = 0;
  // Returns when all `size` ranks have joined. Errors: DeadlineExceeded, Cancelled, Internal with NCCL's text.
  virtual absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinGroup(const GroupKey& key, int rank, int size,
                                                                 base::milliseconds timeout, std::stop_token stop) = 0;
};

// Whether this program was built with CUDA.
bool BuiltForGpus();

// The first GPU that the process sees. Errors: Unimplemented in a build without CUDA; NotFound without a GPU or driver.
absl::StatusOr<std::shared_ptr<Device>> OpenGpu();

}  // namespace medley::worker::device
