// Numbers of 16 bits for rows and gradients on the wire (spec.training.embeddings.wire). Pure, thread-safe.
//
// A number is rounded to the nearest that 16 bits can hold, ties to even, so all processors give the same bits.
// float16 (IEEE 754) has 11 significant bits and holds up to 65504; bfloat16 has 8 and the range of float32. Gradients
// of a mean over a batch are small: as float16 they are sent 2^10 times as large, and what is then too large is the
// largest number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

namespace medley::worker {

enum class WireFormat { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
enum class WireValues { kWeights, kGradients };

// Reads spec.training.embeddings.wire, which the schema has checked.
WireFormat WireFormatNamed(std::string_view name);
// A number of a message. InvalidArgument: there is no such format.
absl::StatusOr<WireFormat> WireFormatOf(int number);
// Bytes of a number.
size_t WireBytes(WireFormat format);

// Appends `values` to `bytes`.
void EncodeFloats(WireFormat format, WireValues kind, std::span<const float> values, std::string& bytes);
// Reads values.size() numbers from `bytes`, which has that many.
void DecodeFloats(WireFormat format, WireValues kind, const char* bytes, std::span<float> values);
// What the other side reads: for rows of a shard in this process, so that no value depends on where a shard is.
void RoundAsOnWire(WireFormat format, WireValues kind, std::span<float> values);

}  // namespace medley::worker
