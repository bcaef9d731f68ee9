#include "common/tf_record/tf_record.h"

#include <array>
#include <bit>
#include <cstring>

#include "common/base/status.h"

namespace medley::tf_record {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kPolynomial = 0x82F63B78;  // of Castagnoli, with its bits reversed
constexpr uint32_t kMaskDelta = 0xA282EAD8;

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}();

// TensorFlow masks a CRC that is stored beside its data, because the CRC of data with their CRC is constant.
uint32_t Masked(std::string_view data) { return std::rotr(Crc32c(data), 15) + kMaskDelta; }

template <typename T>
std::string_view Bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

uint32_t Crc32c(std::string_view data) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

std::string TfRecord(std::string_view data) {
  const uint64_t length = data.size();
  const uint32_t length_crc = Masked(Bytes(length));
  const uint32_t data_crc = Masked(data);
  std::string record;
  record.reserve(data.size() + 16);
  record.append(Bytes(length)).append(Bytes(length_crc)).append(data).append(Bytes(data_crc));
  return record;
}

absl::StatusOr<std::optional<FirstRecord>> ReadFirst(std::string_view bytes, uint64_t most) {
  constexpr size_t kHeader = 12, kFooter = 4;
  constexpr uint64_t kLongest = uint64_t{1} << 40;
  if (bytes.size() < kHeader) return std::nullopt;
  uint64_t length = 0;
  uint32_t crc = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::memcpy(&crc, bytes.data() + sizeof length, sizeof crc);
  if (crc != Masked(bytes.substr(0, sizeof length)))
    return base::DataLoss("the checksum of a record's length is wrong");
  if (length > kLongest) return base::DataLoss("a record has {} bytes", length);
  const uint64_t size = kHeader + length + kFooter;
  if (length > most) return FirstRecord{std::nullopt, size};
  if (bytes.size() < size) return std::nullopt;
  const std::string_view data = bytes.substr(kHeader, length);
  std::memcpy(&crc, bytes.data() + kHeader + length, sizeof crc);
  if (crc != Masked(data)) return base::DataLoss("the checksum of a record of {} bytes is wrong", length);
  return FirstRecord{data, size};
}

}  // namespace medley::tf_record
