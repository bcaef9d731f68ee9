#include "localcluster/node/address_pool.h"

#include <arpa/inet.h>

#include <charconv>

#include "common/base/hash.h"
#include "common/base/status.h"

namespace medley::localcluster {
namespace {

std::string Format(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255, address & 255);
}

}  // namespace

absl::StatusOr<AddressPool> AddressPool::Parse(const std::string& cidr, std::string node) {
  const size_t slash = cidr.find('/');
  in_addr address{};
  int bits = 0;
  bool good = slash != std::string::npos && inet_pton(AF_INET, cidr.substr(0, slash).c_str(), &address) == 1;
  if (good) {
    const char* end = cidr.data() + cidr.size();
    const auto parsed = std::from_chars(cidr.data() + slash + 1, end, bits);
    good = parsed.ec == std::errc() && parsed.ptr == end && bits >= 8 && bits <= 29;
  }
  const uint32_t host = ntohl(address.s_addr);
  if (!good || host >> 24 != 127) {
    return base::InvalidArgument("pod address range '{}' must be inside 127.0.0.0/8 with a prefix of /8 to /29", cidr);
  }
  const uint32_t size = uint32_t{1} << (32 - bits);
  const uint32_t network = host & ~(size - 1);
  // 127.0.0.x is reserved for the machine.
  const uint32_t first = std::max(network + 1, uint32_t{0x7f000100});
  if (first >= network + size - 1)
    return base::InvalidArgument("pod address range '{}' has no address outside 127.0.0.0/24", cidr);
  return AddressPool(std::move(node), first, network + size - 1 - first);
}

AddressPool::AddressPool(AddressPool&& other) noexcept
    : node_(other.node_), first_(other.first_), count_(other.count_) {
  base::MutexLock lock(other.mutex_);
  taken_ = std::move(other.taken_);
  used_ = std::move(other.used_);
}

absl::StatusOr<std::string> AddressPool::Take(const std::string& key) {
  base::MutexLock lock(mutex_);
  if (const auto it = taken_.find(key); it != taken_.end()) return Format(it->second);
  if (used_.size() >= count_) return base::ResourceExhausted("all {} pod addresses are in use", count_);
  uint32_t offset = static_cast<uint32_t>(base::Hash64(node_ + " " + key) % count_);
  while (used_.contains(first_ + offset)) offset = (offset + 1) % count_;
  used_.insert(first_ + offset);
  taken_[key] = first_ + offset;
  return Format(first_ + offset);
}

void AddressPool::Claim(const std::string& key, const std::string& address) {
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1) return;
  const uint32_t host = ntohl(parsed.s_addr);
  base::MutexLock lock(mutex_);
  if (host < first_ || host >= first_ + count_ || used_.contains(host) || taken_.contains(key)) return;
  used_.insert(host);
  taken_[key] = host;
}

void AddressPool::Release(const std::string& key) {
  base::MutexLock lock(mutex_);
  const auto it = taken_.find(key);
  if (it == taken_.end()) return;
  used_.erase(it->second);
  taken_.erase(it);
}

}  // namespace medley::localcluster
