// Converts values to and from bytes in the machine's byte order (little-endian, checked), for our own files. Not
// thread-safe.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace medley::sched::policy_net {

static_assert(std::endian::native == std::endian::little, "files are written in the machine's byte order");

template <typename T>
void PutValue(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads values from the front of `bytes`, and records whether there were enough bytes. The bytes must outlive the
// reader.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  // Returns a zero value if there are not enough bytes.
  template <typename T>
  T Take() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      short_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string TakeString(size_t size) {
    if (bytes_.size() < size) {
      short_ = true;
      return {};
    }
    std::string value(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return value;
  }
  size_t left() const { return bytes_.size(); }
  bool cut_short() const { return short_; }

 private:
  std::string_view bytes_;
  bool short_ = false;
};

}  // namespace medley::sched::policy_net
