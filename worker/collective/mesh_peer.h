// One peer of a mesh group (mesh_group.cc): its stream, what it has sent and who waits for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/collective/peer_stream.h"

namespace medley::worker {

// The top byte of a tag separates messages of the caller from those of collectives.
inline constexpr uint64_t kUserTags = uint64_t{0x40} << 56;
inline constexpr uint64_t kCollectiveTag = uint64_t{0x41} << 56;
inline constexpr uint64_t kFarewellTag = uint64_t{0x42} << 56;  // no more will come; without bytes
inline constexpr size_t kMaxQueuedMessages = 1024;
inline constexpr size_t kMaxQueuedBytes = size_t{256} << 20;  // of all peers
inline constexpr size_t kMaxArrivedBytes = size_t{64} << 20;  // of one peer, before a receiver
inline constexpr uint64_t kMaxMessageBytes = uint64_t{8} << 30;

struct MessageHeader {
  uint64_t tag = 0;
  uint64_t size = 0;
};
// The sender writes a message that is not larger by itself, if nobody else is writing and the connection takes it: that
// saves a copy and waking a thread, while the processor works for the message anyway.
inline constexpr size_t kMaxDirectBytes = size_t{256} << 10;
inline constexpr size_t kRecord = size_t{16} << 10;  // of TLS; what is written at once has as few as possible

// The header of a message of `size` bytes, followed by `bytes`, the first of them.
inline void Pack(uint64_t tag, size_t size, std::span<const std::byte> bytes, std::vector<std::byte>& out) {
  const MessageHeader header{tag, size};
  const std::span<const std::byte> head = std::as_bytes(std::span(&header, 1));
  out.clear();
  out.reserve(head.size() + bytes.size());
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// One that waits for a message.
struct MessageReceiver {
  std::span<std::byte> bytes;
  enum class State { kWaiting, kReading, kDone } state = State::kWaiting;
  base::CondVar changed;  // its state
};

// One that arrived before its receiver. Its bytes are not set to zero first.
struct ArrivedMessage {
  explicit ArrivedMessage(size_t bytes) : data(std::make_unique_for_overwrite<std::byte[]>(bytes)), size(bytes) {}
  std::span<std::byte> bytes() const { return {data.get(), size}; }

  std::unique_ptr<std::byte[]> data;
  size_t size = 0;
};

// Each thread waits for a condition of its own: a message wakes those that it concerns, however many peers there are.
struct MeshPeer {
  std::unique_ptr<PeerStream> stream;
  base::Mutex write_mutex;                                     // a message is written as a whole
  std::vector<std::byte> first_record;                         // guarded by write_mutex
  base::CondVar to_read;                                       // something was received, or has a receiver
  base::CondVar to_write;                                      // the queue is not empty
  std::map<uint64_t, std::deque<MessageReceiver*>> receivers;  // by tag; guarded by the group's mutex
  std::map<uint64_t, std::deque<ArrivedMessage>> arrived;      // likewise
  size_t arrived_bytes = 0;                                    // likewise
  std::deque<std::vector<std::byte>> queue;                    // likewise; packed messages
  bool sending = false;                                        // likewise; a message of the caller is written
  bool half_sent = false;                                      // likewise; it is not whole without the queue's first
  int collectives = 0;                                         // likewise; calls that write for one
  bool left = false;                                           // likewise; it has ended its group in order
};

}  // namespace medley::worker
