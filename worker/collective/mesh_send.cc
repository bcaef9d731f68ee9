// Messages that leave: written by who sends them, or queued for a sending thread for each peer.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/mesh_group_class.h"

namespace medley::worker {
namespace {

absl::Status WriteMessage(MeshPeer& peer, uint64_t tag, std::span<const std::byte> bytes, const Patience* patience) {
  const size_t first = std::min(bytes.size(), kRecord - sizeof(MessageHeader));
  base::MutexLock lock(peer.write_mutex);
  Pack(tag, bytes.size(), bytes.first(first), peer.first_record);
  MEDLEY_RETURN_IF_ERROR(peer.stream->Write(peer.first_record, patience));
  return peer.stream->Write(bytes.subspan(first), patience);
}

}  // namespace

absl::Status MeshGroup::WriteCollective(int to, std::span<const std::byte> bytes) {
  const Patience patience{base::SystemClock().Steady() + options().timeout, {}};
  MeshPeer& peer = At(to);
  bool alone = false;
  {
    base::MutexLock lock(mutex_);
    ++peer.collectives;
    alone = written_.WaitFor(mutex_, {}, options().timeout, [&] { return closed_ || !peer.half_sent; });
  }
  const absl::Status written = alone ? WriteMessage(peer, kCollectiveTag, bytes, &patience)
                                     : base::DeadlineExceeded("{} takes no messages", Name(to));
  base::MutexLock lock(mutex_);
  --peer.collectives;
  return written;
}

absl::Status MeshGroup::Send(int to, uint64_t tag, std::span<const std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(CheckPeer(to));
  if (bytes.size() > kMaxMessageBytes) {
    return base::InvalidArgument("a message of {} bytes; at most {} are possible", bytes.size(), kMaxMessageBytes);
  }
  MeshPeer& peer = At(to);
  absl::Status status;
  bool directly = false;
  {
    base::MutexLock lock(mutex_);
    const auto room = [&] {
      return closed_ || peer.left || queued_messages_ == 0 ||
             (queued_messages_ < kMaxQueuedMessages && queued_bytes_ + bytes.size() <= kMaxQueuedBytes);
    };
    if (!written_.WaitFor(mutex_, {}, options().timeout, room)) {
      status = base::DeadlineExceeded("{} takes no messages", Name(to));
    } else if (closed_) {
      status = base::Aborted("{}", why_);
    } else if (peer.left) {
      status = base::Unavailable("{} has left", Name(to));
    } else {
      ++queued_messages_;
      queued_bytes_ += sizeof(MessageHeader) + bytes.size();
      directly = bytes.size() <= kMaxDirectBytes && peer.stream != nullptr && peer.queue.empty() && !peer.sending &&
                 peer.collectives == 0;
      if (directly) {
        peer.sending = peer.half_sent = true;
      } else {
        Pack(kUserTags | tag, bytes.size(), bytes, peer.queue.emplace_back());
        peer.to_write.NotifyOne();
      }
    }
  }
  if (directly) status = WriteDirectly(peer, kUserTags | tag, bytes);
  return Ended("send to " + Name(to), status);
}

absl::Status MeshGroup::WriteDirectly(MeshPeer& peer, uint64_t tag, std::span<const std::byte> bytes) {
  const size_t first = std::min(bytes.size(), kRecord - sizeof(MessageHeader));
  std::vector<std::byte> rest;
  absl::Status status;
  {
    base::MutexLock lock(peer.write_mutex);
    Pack(tag, bytes.size(), bytes.first(first), peer.first_record);
    absl::StatusOr<size_t> written = peer.stream->WriteSome(peer.first_record);
    if (written.ok() && *written < peer.first_record.size()) {
      rest.assign(peer.first_record.begin() + static_cast<ptrdiff_t>(*written), peer.first_record.end());
      rest.insert(rest.end(), bytes.begin() + static_cast<ptrdiff_t>(first), bytes.end());
    } else if (written.ok()) {
      written = peer.stream->WriteSome(bytes.subspan(first));
      if (written.ok()) rest.assign(bytes.begin() + static_cast<ptrdiff_t>(first + *written), bytes.end());
    }
    status = written.status();
  }
  base::MutexLock lock(mutex_);
  queued_bytes_ -= sizeof(MessageHeader) + bytes.size() - rest.size();
  peer.sending = false;
  if (rest.empty()) {
    --queued_messages_;
    peer.half_sent = false;
  } else {
    peer.queue.push_front(std::move(rest));
  }
  written_.NotifyAll();
  if (!peer.queue.empty()) peer.to_write.NotifyOne();
  return peer.left ? absl::OkStatus() : status;  // a peer that has left does not want the message
}

absl::Status MeshGroup::Flush() {
  absl::Status status;
  {
    base::MutexLock lock(mutex_);
    const auto sent = [&] {
      return closed_ || std::all_of(peers_.begin(), peers_.end(),
                                    [](const MeshPeer& peer) { return peer.queue.empty() && !peer.sending; });
    };
    if (!written_.WaitFor(mutex_, {}, options().timeout, sent)) {
      status = base::DeadlineExceeded("messages are still unsent");
    } else if (closed_) {
      status = base::Aborted("{}", why_);
    }
  }
  return Ended("flush", status);
}

void MeshGroup::Write(size_t index) {
  MeshPeer& peer = peers_[index];
  std::vector<std::byte> message;
  for (bool wrote = false; true; wrote = true) {
    {
      base::MutexLock lock(mutex_);
      if (wrote) {
        --queued_messages_;
        queued_bytes_ -= message.size();
        peer.sending = peer.half_sent = false;
        written_.NotifyAll();
      }
      peer.to_write.Wait(mutex_, {}, [&] { return closed_ || (!peer.sending && !peer.queue.empty()); });
      if (closed_) return;
      message = std::move(peer.queue.front());
      peer.queue.pop_front();
      peer.sending = true;
    }
    absl::Status written;
    {
      base::MutexLock lock(peer.write_mutex);
      written = peer.stream->Write(message);
    }
    if (written.ok()) continue;
    {
      base::MutexLock lock(mutex_);
      if (peer.left) continue;  // it does not want the message
    }
    return CloseFor(fmt::format("{}: {}", options().members[index], base::Message(written)));
  }
}

}  // namespace medley::worker
