// Messages that arrive: a reading thread for each peer, and those who wait.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/mesh_group_class.h"

namespace medley::worker {
namespace {

// A peer that leaves within a message has not left in order.
absl::Status Whole(absl::Status read) {
  return absl::IsOutOfRange(read) ? base::Unavailable("{}", base::Message(read)) : read;
}

}  // namespace

absl::Status MeshGroup::Begin(int from, uint64_t tag, MessageReceiver& receiver) {
  MeshPeer& peer = At(from);
  base::MutexLock lock(mutex_);
  const auto arrived = peer.arrived.find(tag);
  if (arrived != peer.arrived.end()) {
    const ArrivedMessage message = std::move(arrived->second.front());
    arrived->second.pop_front();
    if (arrived->second.empty()) peer.arrived.erase(arrived);
    peer.arrived_bytes -= message.size;
    peer.to_read.NotifyOne();
    if (message.size != receiver.bytes.size()) {
      return base::DataLoss("{} sent {} bytes, expected {}", Name(from), message.size, receiver.bytes.size());
    }
    std::ranges::copy(message.bytes(), receiver.bytes.begin());
    receiver.state = MessageReceiver::State::kDone;
    return absl::OkStatus();
  }
  if (closed_) return base::Unavailable("{}", why_);
  if (peer.left) return base::Unavailable("{} has left", Name(from));
  peer.receivers[tag].push_back(&receiver);
  peer.to_read.NotifyOne();
  return absl::OkStatus();
}

absl::Status MeshGroup::End(int from, uint64_t tag, MessageReceiver& receiver, base::nanoseconds patience) {
  MeshPeer& peer = At(from);
  base::MutexLock lock(mutex_);
  const bool ended = receiver.changed.WaitFor(mutex_, {}, patience, [&] {
    return receiver.state == MessageReceiver::State::kDone ||
           ((closed_ || peer.left) && receiver.state == MessageReceiver::State::kWaiting);
  });
  if (receiver.state == MessageReceiver::State::kDone) return absl::OkStatus();
  if (receiver.state == MessageReceiver::State::kReading) {  // the reader uses our memory: end it, then go
    peer.stream->Shutdown();
    receiver.changed.Wait(mutex_, {}, [&] { return receiver.state != MessageReceiver::State::kReading; });
    if (receiver.state == MessageReceiver::State::kDone) return absl::OkStatus();
  }
  if (const auto waiting = peer.receivers.find(tag); waiting != peer.receivers.end()) {
    std::erase(waiting->second, &receiver);
    if (waiting->second.empty()) peer.receivers.erase(waiting);
  }
  if (closed_) return base::Unavailable("{}", why_);
  if (peer.left) return base::Unavailable("{} has left", Name(from));
  if (!ended) return base::Unavailable("no message from {} in time", Name(from));
  return base::Unavailable("{}: the connection broke", Name(from));
}

void MeshGroup::Read(size_t index) {
  MeshPeer& peer = peers_[index];
  absl::Status status;
  do {
    status = ReadMessage(peer);
  } while (status.ok());
  {
    base::MutexLock lock(mutex_);
    if (absl::IsOutOfRange(status)) {
      peer.left = true;
      return WakeAll();
    }
    if (!closed_) lost_ = options().members[index];
  }
  CloseFor(fmt::format("{}: {}", options().members[index], base::Message(status)));
}

// OutOfRange: the peer has left, between two messages.
absl::Status MeshGroup::ReadMessage(MeshPeer& peer) {
  MessageHeader header;
  const std::span<std::byte> head = std::as_writable_bytes(std::span(&header, 1));
  MEDLEY_RETURN_IF_ERROR(peer.stream->Read(head.first(1)));
  MEDLEY_RETURN_IF_ERROR(Whole(peer.stream->Read(head.subspan(1))));
  if (header.tag == kFarewellTag) return base::OutOfRange("the peer has left");
  if (header.size > kMaxMessageBytes) return base::DataLoss("a message of {} bytes", header.size);
  MessageReceiver* receiver = nullptr;
  {
    base::MutexLock lock(mutex_);
    const auto waits = [&] {
      const auto found = peer.receivers.find(header.tag);
      if (found == peer.receivers.end()) return false;
      receiver = found->second.front();
      return true;
    };
    // What arrived before its receiver is kept, up to a bound; a single message always is.
    peer.to_read.Wait(mutex_, {}, [&] {
      return closed_ || waits() || peer.arrived_bytes == 0 || peer.arrived_bytes + header.size <= kMaxArrivedBytes;
    });
    if (closed_) return base::Aborted("{}", why_);
    if (receiver != nullptr) {
      if (receiver->bytes.size() != header.size) {
        return base::DataLoss("a message of {} bytes, expected {}", header.size, receiver->bytes.size());
      }
      auto& waiting = peer.receivers[header.tag];
      waiting.pop_front();
      if (waiting.empty()) peer.receivers.erase(header.tag);
      receiver->state = MessageReceiver::State::kReading;
    } else {
      peer.arrived_bytes += header.size;
    }
  }
  if (receiver == nullptr) {
    ArrivedMessage message(header.size);
    const std::span<std::byte> bytes = message.bytes();
    const absl::Status read = Whole(peer.stream->Read(bytes));
    base::MutexLock lock(mutex_);
    // A receiver may have begun to wait meanwhile.
    const auto found = peer.receivers.find(header.tag);
    if (read.ok() && found != peer.receivers.end()) {
      MessageReceiver* late = found->second.front();
      if (late->bytes.size() != bytes.size()) {
        return base::DataLoss("a message of {} bytes, expected {}", bytes.size(), late->bytes.size());
      }
      found->second.pop_front();
      if (found->second.empty()) peer.receivers.erase(found);
      std::copy(bytes.begin(), bytes.end(), late->bytes.begin());
      late->state = MessageReceiver::State::kDone;
      late->changed.NotifyOne();
      peer.arrived_bytes -= header.size;
    } else if (read.ok()) {
      peer.arrived[header.tag].push_back(std::move(message));
    }
    return read;
  }
  const absl::Status read = Whole(peer.stream->Read(receiver->bytes));
  base::MutexLock lock(mutex_);
  receiver->state = read.ok() ? MessageReceiver::State::kDone : MessageReceiver::State::kWaiting;
  if (!read.ok()) peer.receivers[header.tag].push_front(receiver);  // the end of the group wakes it
  receiver->changed.NotifyOne();
  return read;
}

}  // namespace medley::worker
