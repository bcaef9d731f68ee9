#include "worker/ps/half_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr float kGradientScale = 1024;
constexpr float kMostHalf = 65504;

uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);  // NaN stays one
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float FromBfloat16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

// Numbers that are too small for a normal one are rounded by an addition whose sum has the same last bit.
uint16_t ToFloat16(float value) {
  constexpr uint32_t kMagic = (127U - 15U + 23U - 10U + 1U) << 23;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits & 0x80000000U;
  uint32_t rest = bits ^ sign;
  uint32_t half = 0;
  if (rest >= 0x47800000U) {  // 65536 and more, infinity, NaN
    half = rest > 0x7F800000U ? 0x7E00U : 0x7C00U;
  } else if (rest < 0x38800000U) {  // below 2^-14
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + std::bit_cast<float>(kMagic)) - kMagic;
  } else {
    rest += 0xC8000FFFU + ((rest >> 13) & 1U);  // the exponent's bias, and half of the last bit
    half = rest >> 13;
  }
  return static_cast<uint16_t>(half | (sign >> 16));
}

float FromFloat16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000U} << 16, rest = half & 0x7FFFU;
  if (rest >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | (rest & 0x3FFU) << 13);
  // Trainers and servers compute with denormal floats as zeros, so none may occur on the way to a small number.
  const float value =
      rest < 0x400U ? static_cast<float>(rest) * 0x1p-24F : std::bit_cast<float>((rest << 13) + ((127U - 15U) << 23));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

uint16_t ToHalf(WireFormat format, WireValues kind, float value) {
  if (format == WireFormat::kBfloat16) return ToBfloat16(value);
  if (kind == WireValues::kGradients) value *= kGradientScale;
  // A weight or gradient that is not finite stays so: its step fails as it would with float32.
  return ToFloat16(std::isfinite(value) ? std::clamp(value, -kMostHalf, kMostHalf) : value);
}

float FromHalf(WireFormat format, WireValues kind, uint16_t half) {
  if (format == WireFormat::kBfloat16) return FromBfloat16(half);
  return FromFloat16(half) * (kind == WireValues::kGradients ? 1 / kGradientScale : 1);
}

}  // namespace

WireFormat WireFormatNamed(std::string_view name) {
  return name == "float16" ? WireFormat::kFloat16 : name == "bfloat16" ? WireFormat::kBfloat16 : WireFormat::kFloat32;
}

absl::StatusOr<WireFormat> WireFormatOf(int number) {
  if (number >= 0 && number <= 2) return static_cast<WireFormat>(number);
  return base::InvalidArgument("rows of the format {}, which this process does not know", number);
}

size_t WireBytes(WireFormat format) { return format == WireFormat::kFloat32 ? sizeof(float) : sizeof(uint16_t); }

void EncodeFloats(WireFormat format, WireValues kind, std::span<const float> values, std::string& bytes) {
  const size_t first = bytes.size();
  bytes.resize(first + values.size() * WireBytes(format));
  char* const to = bytes.data() + first;
  if (format == WireFormat::kFloat32) {
    std::memcpy(to, values.data(), values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = ToHalf(format, kind, values[i]);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

void DecodeFloats(WireFormat format, WireValues kind, const char* bytes, std::span<float> values) {
  if (format == WireFormat::kFloat32) {
    std::memcpy(values.data(), bytes, values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes + i * sizeof half, sizeof half);
    values[i] = FromHalf(format, kind, half);
  }
}

void RoundAsOnWire(WireFormat format, WireValues kind, std::span<float> values) {
  if (format == WireFormat::kFloat32) return;
  for (float& value : values) value = FromHalf(format, kind, ToHalf(format, kind, value));
}

}  // namespace medley::worker
