// The format of a checkpoint's binary data file. Little-endian, no padding; can be written and read as a stream.
//
//   file    := header (header.h)  section*  end
//   section := kind u32 (1 dense, 2 rows)  id i32 (operation or table)  width u32  name_bytes u32  count_a u64
//              count_b u64  header_crc u32 (of these 32 bytes and the name)  name  payload  payload_crc u32
//   dense   :  payload = count_a float32 weights, count_b float32 optimizer state; width 0
//   rows    :  payload = count_a u64 keys, count_b float32 values, count_b = count_a * width; no name
//   end     := kind u32 (= 0xE0D) and its crc u32; a file that was truncated between two sections lacks it
//
// Every crc is zlib's CRC-32. The manifest also holds a digest of the whole file. It is no CRC: data that end with
// their own CRC all have the same one, so it would not distinguish files. Internal to worker/checkpoint.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace medley::worker::checkpoint_format {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

inline constexpr std::string_view kMagic = "MDLYCKPT";
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kDense = 1;
inline constexpr uint32_t kRows = 2;
inline constexpr uint32_t kEnd = 0xE0D;
inline constexpr uint64_t kMaxFloats = uint64_t{1} << 28;  // per section
inline constexpr uint32_t kMaxName = 4096;

struct SectionHeader {
  uint32_t kind = 0;
  int32_t id = 0;
  uint32_t width = 0;
  uint32_t name_bytes = 0;
  uint64_t count_a = 0;
  uint64_t count_b = 0;
};
static_assert(sizeof(SectionHeader) == 32);

template <typename T>
void Append(std::string& out, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

// Continues zlib's CRC-32 from `crc` over data of any length.
uint32_t Crc32(uint32_t crc, const void* data, size_t bytes);

}  // namespace medley::worker::checkpoint_format
