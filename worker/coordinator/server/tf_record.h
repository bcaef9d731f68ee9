// Records as in TensorFlow's TFRecord files. Pure.
//
//   record := length u64  masked_crc32c(length) u32  data  masked_crc32c(data) u32        (little-endian)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::worker {

// The CRC-32C (Castagnoli) of `data`.
uint32_t Crc32c(std::string_view data);

// `data`, framed as one record.
std::string TfRecord(std::string_view data);

}  // namespace medley::worker
