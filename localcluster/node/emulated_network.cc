#include "localcluster/node/emulated_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {
namespace {

constexpr size_t kMostNodes = 250;
constexpr size_t kLargestPacket = 65535;
constexpr size_t kAddressAt = 16;  // of the destination in an IPv4 header, whose last byte is the node
constexpr ssize_t kSmall = 512;    // acknowledgements and the like pass cards before others, as real queues let them
constexpr auto kBurst = base::milliseconds(1);  // a pause of this length ends one

struct Direction {
  LinkState state;
  base::SteadyTime free;          // when the link has sent all packets so far
  base::SteadyTime last_sent;     // by a process
  base::SteadyTime last_arrival;  // of the packets so far
  base::nanoseconds delay{0};     // of the burst
};

struct Packet {
  base::SteadyTime due;
  int64_t number = 0;
  size_t to = 0;
  std::vector<uint8_t> bytes;
  bool operator>(const Packet& other) const { return std::pair(due, number) > std::pair(other.due, other.number); }
};

// When the first and the last byte of a packet pass a point.
struct Passing {
  base::SteadyTime begin, end;
};

// Sends a packet through a card or a link, which passes bytes on as they come. `free`: when it has passed all packets
// so far.
void Pass(ssize_t size, double bytes_per_second, base::SteadyTime& free, Passing& packet) {
  packet.begin = std::max(packet.begin, free);
  packet.end = std::max(packet.end, packet.begin);
  if (bytes_per_second > 0) {
    const double seconds = static_cast<double>(size) / bytes_per_second;
    packet.end = std::max(packet.end, packet.begin + base::nanoseconds(static_cast<int64_t>(1e9 * seconds)));
  }
  free = packet.end;
}

std::string AddressOfNode(size_t node) { return fmt::format("10.99.0.{}", node + 1); }

// Folders of containers may lack the file of the device that the kernel has.
int OpenTun() {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK;
  const int device = open("/dev/net/tun", kFlags);
  if (device >= 0 || errno != ENOENT) return device;
  const auto folder = base::MakeTempDir("medley-tun");
  if (!folder.ok()) return -1;
  const std::string file = *folder / "tun";
  const int made = mknod(file.c_str(), S_IFCHR | 0600, makedev(10, 200)) == 0 ? open(file.c_str(), kFlags) : -1;
  const int error = errno;
  base::RemoveTempDir(*folder);
  errno = error;
  return made;
}

// Makes a TUN device in the calling thread's namespace. All addresses are beyond it; connections begin with a large
// window, so that the delay of a message does not depend on how TCP started.
absl::StatusOr<UniqueFd> MakeDevice(const std::string& address) {
  UniqueFd device(OpenTun());
  if (!device.valid()) return base::ErrnoStatus(errno, "opening the device tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strcpy(request.ifr_name, "tun0");
  if (ioctl(device.get(), TUNSETIFF, &request) != 0) return base::ErrnoStatus(errno, "creating a TUN device");
  const std::string command = fmt::format(
      "ip link set lo up && ip link set tun0 mtu {} txqueuelen 10000 up && ip address add {}/32 dev tun0 && "
      "ip route add 10.99.0.0/24 dev tun0 src {} initcwnd 400 initrwnd 400",
      kLargestPacket, address, address);
  if (std::system(command.c_str()) != 0) return base::Internal("'{}' failed", command);
  // Where /proc/sys cannot be written, windows grow anew after each pause.
  for (const auto& [name, value] : {std::pair("tcp_slow_start_after_idle", 0), {"tcp_no_metrics_save", 1}}) {
    std::ofstream(fmt::format("/proc/sys/net/ipv4/{}", name)) << value;
  }
  return device;
}

}  // namespace

struct EmulatedNetwork::State {
  struct Node {
    UniqueFd space;   // its network namespace
    UniqueFd device;  // its TUN device
    CardState card;
    base::SteadyTime sent, received;  // when the card has sent and received all packets so far
  };

  explicit State(uint64_t seed) : wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), rng(seed) {}

  absl::StatusOr<size_t> Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Carry();
  bool Take(int device, size_t from, std::vector<uint8_t>& buffer);
  base::nanoseconds Draw(base::nanoseconds delay, double spread) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  base::nanoseconds Deliver();  // what is due; returns the time until the next packet is
  void Wake() const { eventfd_write(wake.get(), 1); }

  UniqueFd wake;  // the carrier looks again: a node is new, or it ends
  base::Mutex mutex;
  base::Rng rng ABSL_GUARDED_BY(mutex);
  std::map<std::string, size_t> numbers ABSL_GUARDED_BY(mutex);
  std::set<size_t> unused ABSL_GUARDED_BY(mutex);  // nodes that were removed
  std::vector<Node> nodes ABSL_GUARDED_BY(mutex);  // never fewer
  std::map<std::pair<size_t, size_t>, Direction> directions ABSL_GUARDED_BY(mutex);
  std::vector<Packet> queue ABSL_GUARDED_BY(mutex);  // a heap: the first is the next
  int64_t packets ABSL_GUARDED_BY(mutex) = 0;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
  base::SystemClock clock;
  std::thread carrier;
};

absl::StatusOr<size_t> EmulatedNetwork::State::Find(const std::string& name) {
  const auto known = numbers.find(name);
  if (known != numbers.end()) return known->second;
  if (!unused.empty()) {
    const size_t again = *unused.begin();
    unused.erase(unused.begin());
    numbers[name] = again;
    return again;
  }
  const size_t number = nodes.size();
  if (number == kMostNodes) return base::ResourceExhausted("the emulated network has {} nodes already", number);
  Node node;
  absl::Status status;
  std::thread maker([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      status = base::ErrnoStatus(errno, "creating a network namespace");
      return;
    }
    node.space = UniqueFd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!node.space.valid()) status = base::ErrnoStatus(errno, "opening a network namespace");
    if (!status.ok()) return;
    auto device = MakeDevice(AddressOfNode(number));
    status = device.status();
    if (device.ok()) node.device = *std::move(device);
  });
  maker.join();
  if (!status.ok()) return status;
  nodes.push_back(std::move(node));
  numbers[name] = number;
  Wake();
  return number;
}

base::nanoseconds EmulatedNetwork::State::Draw(base::nanoseconds delay, double spread) {
  return base::nanoseconds(
      static_cast<int64_t>(static_cast<double>(delay.count()) * rng.Uniform(1 - spread, 1 + spread)));
}

bool EmulatedNetwork::State::Take(int device, size_t from, std::vector<uint8_t>& buffer) {
  const ssize_t size = read(device, buffer.data(), buffer.size());
  if (size < static_cast<ssize_t>(kAddressAt + 4)) return size > 0;
  const size_t to = size_t{buffer[kAddressAt + 3]} - 1;
  const bool ours = buffer[0] >> 4 == 4 && buffer[kAddressAt] == 10 && buffer[kAddressAt + 1] == 99;
  const base::MutexLock lock(mutex);
  if (!ours || to >= nodes.size()) return true;
  Direction& direction = directions[{from, to}];
  const base::SteadyTime now = clock.Steady();
  const LinkState& link = direction.state;
  Node &sender = nodes[from], &receiver = nodes[to];
  if (now - direction.last_sent > kBurst) {
    direction.delay = Draw(link.delay, link.spread) + Draw(sender.card.delay, sender.card.spread) +
                      Draw(receiver.card.delay, receiver.card.spread);
  }
  direction.last_sent = now;
  Passing packet{now, now};
  const bool small = size < kSmall;
  if (sender.card.sends > 0 && !small) Pass(size, sender.card.sends, sender.sent, packet);
  Pass(size, link.bytes_per_second, direction.free, packet);
  packet.begin += direction.delay;
  packet.end += direction.delay;
  if (receiver.card.receives > 0 && !small) Pass(size, receiver.card.receives, receiver.received, packet);
  direction.last_arrival = std::max(direction.last_arrival, packet.end);
  queue.push_back({direction.last_arrival, ++packets, to, {buffer.begin(), buffer.begin() + size}});
  std::push_heap(queue.begin(), queue.end(), std::greater<>());
  return true;
}

base::nanoseconds EmulatedNetwork::State::Deliver() {
  const base::MutexLock lock(mutex);
  while (!queue.empty()) {
    const base::nanoseconds wait = queue.front().due - clock.Steady();
    if (wait.count() > 0) return wait;
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const Packet& packet = queue.back();
    // A device whose processes do not read in time drops the packet, as a network does.
    (void)!write(nodes[packet.to].device.get(), packet.bytes.data(), packet.bytes.size());
    queue.pop_back();
  }
  return base::seconds(1);
}

void EmulatedNetwork::State::Carry() {
  std::vector<uint8_t> buffer(kLargestPacket);
  std::vector<pollfd> waits;
  while (true) {
    const base::nanoseconds wait = Deliver();
    {
      const base::MutexLock lock(mutex);
      if (stopped) return;
      for (size_t i = waits.empty() ? 0 : waits.size() - 1; i < nodes.size(); ++i) {
        if (waits.empty()) waits.push_back({wake.get(), POLLIN, 0});
        waits.push_back({nodes[i].device.get(), POLLIN, 0});
      }
    }
    const timespec timeout{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    if (ppoll(waits.data(), waits.size(), &timeout, nullptr) <= 0) continue;
    eventfd_t value = 0;
    if (waits.front().revents != 0) (void)eventfd_read(wake.get(), &value);
    for (size_t i = 1; i < waits.size(); ++i) {
      for (int most = 64; waits[i].revents != 0 && most > 0 && Take(waits[i].fd, i - 1, buffer); --most) {
      }
    }
  }
}

EmulatedNetwork::EmulatedNetwork(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<EmulatedNetwork>> EmulatedNetwork::Create(uint64_t seed) {
  std::unique_ptr<EmulatedNetwork> network(new EmulatedNetwork(std::make_unique<State>(seed)));
  MEDLEY_RETURN_IF_ERROR(network->Address(kHost).status());
  network->state_->carrier = std::thread([state = network->state_.get()] { state->Carry(); });
  network->Enter(kHost);
  return network;
}

EmulatedNetwork::~EmulatedNetwork() {
  {
    const base::MutexLock lock(state_->mutex);
    state_->stopped = true;
  }
  state_->Wake();
  if (state_->carrier.joinable()) state_->carrier.join();
}

absl::StatusOr<std::string> EmulatedNetwork::Address(const std::string& node) {
  const base::MutexLock lock(state_->mutex);
  MEDLEY_ASSIGN_OR_RETURN(const size_t number, state_->Find(node));
  return AddressOfNode(number);
}

absl::Status EmulatedNetwork::SetLink(const std::string& a, const std::string& b, const LinkState& state) {
  const base::MutexLock lock(state_->mutex);
  MEDLEY_ASSIGN_OR_RETURN(const size_t first, state_->Find(a));
  MEDLEY_ASSIGN_OR_RETURN(const size_t second, state_->Find(b));
  for (const auto& ends : {std::pair(first, second), {second, first}}) {
    Direction& direction = state_->directions[ends];
    direction.state = state;
    direction.last_sent = {};  // the next packet begins a burst
  }
  return absl::OkStatus();
}

absl::Status EmulatedNetwork::SetCard(const std::string& node, const CardState& state) {
  const base::MutexLock lock(state_->mutex);
  MEDLEY_ASSIGN_OR_RETURN(const size_t number, state_->Find(node));
  state_->nodes[number].card = state;
  for (auto& [ends, direction] : state_->directions) {
    if (ends.first == number || ends.second == number) direction.last_sent = {};  // the next packet begins a burst
  }
  return absl::OkStatus();
}

absl::StatusOr<int> EmulatedNetwork::Namespace(const std::string& node) {
  const base::MutexLock lock(state_->mutex);
  MEDLEY_ASSIGN_OR_RETURN(const size_t number, state_->Find(node));
  return state_->nodes[number].space.get();
}

void EmulatedNetwork::Remove(const std::string& node) {
  const base::MutexLock lock(state_->mutex);
  const auto known = state_->numbers.find(node);
  if (known == state_->numbers.end()) return;
  const size_t number = known->second;
  state_->nodes[number].card = {};
  std::erase_if(state_->directions,
                [number](const auto& entry) { return entry.first.first == number || entry.first.second == number; });
  state_->unused.insert(number);
  state_->numbers.erase(known);
}

void EmulatedNetwork::Enter(const std::string& node) {
  const base::MutexLock lock(state_->mutex);
  const auto found = state_->numbers.find(node);
  if (found == state_->numbers.end() || setns(state_->nodes[found->second].space.get(), CLONE_NEWNET) != 0) {
    std::fprintf(stderr, "cannot enter the network namespace of %s\n", node.c_str());
    std::abort();  // else a process would run in a network that it must not have
  }
}

EmulatedNetwork::Inside::Inside(EmulatedNetwork& network, const std::string& node) : network_(network) {
  network_.Enter(node);
}

EmulatedNetwork::Inside::~Inside() { network_.Enter(kHost); }

}  // namespace medley::localcluster
