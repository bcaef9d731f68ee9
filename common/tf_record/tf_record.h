// Records as in TensorFlow's TFRecord files. Pure.
//
//   record := length u64  masked_crc32c(length) u32  data  masked_crc32c(data) u32        (little-endian)
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace medley::tf_record {

// The CRC-32C (Castagnoli) of `data`.
uint32_t Crc32c(std::string_view data);

// `data`, framed as one record.
std::string TfRecord(std::string_view data);

struct FirstRecord {
  // Within the bytes that were given; nullopt: it has more than the most bytes, and its own checksum was not compared.
  std::optional<std::string_view> data;
  uint64_t size = 0;  // of the record with its frame, which may end behind the bytes that were given
};

// The record at the start of `bytes`; nullopt: `bytes` end within it. Errors: DataLoss: a checksum is wrong, or the
// record would be longer than 2^40 bytes.
absl::StatusOr<std::optional<FirstRecord>> ReadFirst(std::string_view bytes, uint64_t most);

}  // namespace medley::tf_record
