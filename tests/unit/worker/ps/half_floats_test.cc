// Tests numbers of 16 bits: all of them, and that rounding is to the nearest, ties to even.
#include "worker/ps/half_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "common/base/denormals.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::worker::half_floats_test {
namespace {

using base::StatusIs;

uint16_t Encoded(WireFormat format, float value) {
  std::string bytes;
  EncodeFloats(format, WireValues::kWeights, {&value, 1}, bytes);
  EXPECT_EQ(bytes.size(), 2U);
  uint16_t half = 0;
  std::memcpy(&half, bytes.data(), sizeof half);
  return half;
}

float Decoded(WireFormat format, uint16_t half, WireValues kind = WireValues::kWeights) {
  char bytes[2];
  std::memcpy(bytes, &half, sizeof half);
  float value = 0;
  DecodeFloats(format, kind, bytes, {&value, 1});
  return value;
}

// The value by its definition.
double Defined(WireFormat format, uint16_t half) {
  const int mantissa_bits = format == WireFormat::kFloat16 ? 10 : 7, bias = format == WireFormat::kFloat16 ? 15 : 127;
  const int exponent = (half & 0x7FFF) >> mantissa_bits, mantissa = half & ((1 << mantissa_bits) - 1);
  const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (half & 0x8000) != 0 ? -size : size;
}

bool IsFinite(WireFormat format, uint16_t half) {
  return format == WireFormat::kFloat16 ? (half & 0x7C00) != 0x7C00 : (half & 0x7F80) != 0x7F80;
}

TEST(HalfFloatsTest, EachNumberOf16BitsComesBack) {
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    for (int bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      const float value = Decoded(format, half);
      if (!IsFinite(format, half)) {
        EXPECT_FALSE(std::isfinite(value));
        continue;
      }
      ASSERT_EQ(value, Defined(format, half)) << bits;
      ASSERT_EQ(Encoded(format, value), half) << value;
    }
  }
}

// The programs do so from their start.
TEST(HalfFloatsTest, NumbersAreTheSameWhereDenormalsAreZeros) {
  std::vector<float> values;
  for (int bits = 0; bits < 0x7C00; ++bits)
    values.push_back(Decoded(WireFormat::kFloat16, static_cast<uint16_t>(bits)));
  std::vector<float> there;
  std::vector<uint16_t> back;
  std::jthread([&] {
    base::FlushDenormals();
    for (int bits = 0; bits < 0x7C00; ++bits) {
      there.push_back(Decoded(WireFormat::kFloat16, static_cast<uint16_t>(bits)));
      back.push_back(Encoded(WireFormat::kFloat16, there.back()));
    }
  }).join();
  EXPECT_EQ(there, values);
  for (size_t bits = 0; bits < back.size(); ++bits) ASSERT_EQ(back[bits], bits);
}

TEST(HalfFloatsTest, RoundsToTheNearestTiesToEven) {
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    for (int bits = 0; bits < 0x7FFF; ++bits) {
      const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
      if (!IsFinite(format, high)) break;
      const double middle = (Defined(format, low) + Defined(format, high)) / 2;
      if (static_cast<double>(static_cast<float>(middle)) != middle) continue;  // float32 does not have it
      const auto tie = static_cast<float>(middle);
      ASSERT_EQ(Encoded(format, tie), (bits & 1) == 0 ? low : high) << bits;
      ASSERT_EQ(Encoded(format, std::nextafter(tie, 0.0F)), low) << bits;
      ASSERT_EQ(Encoded(format, std::nextafter(tie, std::numeric_limits<float>::infinity())), high) << bits;
      ASSERT_EQ(Encoded(format, -tie), Encoded(format, tie) | 0x8000);
    }
  }
}

TEST(HalfFloatsTest, WhatIsNotFiniteStaysSoAndLargeNumbersAreTheLargest) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    std::vector<float> values = {infinity, -infinity, std::nanf(""), 1e30F, -1e30F, 70000, 0.0F, -0.0F};
    RoundAsOnWire(format, WireValues::kWeights, values);
    EXPECT_EQ(values[0], infinity);
    EXPECT_EQ(values[1], -infinity);
    EXPECT_TRUE(std::isnan(values[2]));
    if (format == WireFormat::kFloat16) {
      EXPECT_EQ(values[3], 65504);
      EXPECT_EQ(values[4], -65504);
      EXPECT_EQ(values[5], 65504);
    } else {
      EXPECT_NEAR(values[3], 1e30F, 1e28F);
    }
    EXPECT_EQ(values[6], 0);
    EXPECT_TRUE(std::signbit(values[7]));
  }
}

TEST(HalfFloatsTest, SmallGradientsKeepTheirBits) {
  base::Rng rng(1);
  for (int i = 0; i < 10000; ++i) {
    const auto value = static_cast<float>(rng.Uniform(-1, 1) * std::pow(10, -rng.Uniform() * 6));
    for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
      float rounded = value;
      RoundAsOnWire(format, WireValues::kGradients, {&rounded, 1});
      const double part = format == WireFormat::kFloat16 ? 1.0 / 2048 : 1.0 / 256;
      ASSERT_LE(std::abs(rounded - value), part * std::abs(value) + (format == WireFormat::kFloat16 ? 3e-11 : 0))
          << value;
    }
  }
}

TEST(HalfFloatsTest, OneRoundingIsTheTripOverTheWire) {
  base::Rng rng(2);
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(rng.Uniform(-3, 3)));
  for (const WireFormat format : {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    for (const WireValues kind : {WireValues::kWeights, WireValues::kGradients}) {
      std::string bytes = "x";
      EncodeFloats(format, kind, values, bytes);
      ASSERT_EQ(bytes.size(), 1 + values.size() * WireBytes(format));
      std::vector<float> received(values.size()), rounded = values;
      DecodeFloats(format, kind, bytes.data() + 1, received);
      RoundAsOnWire(format, kind, rounded);
      EXPECT_EQ(received, rounded);
      EXPECT_EQ(received == values, format == WireFormat::kFloat32);
    }
  }
}

TEST(HalfFloatsTest, AnUnknownFormatIsRefused) {
  EXPECT_EQ(*WireFormatOf(2), WireFormat::kBfloat16);
  for (const int number : {-1, 3, 1 << 20}) {
    EXPECT_THAT(WireFormatOf(number).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(WireFormatNamed("float16"), WireFormat::kFloat16);
  EXPECT_EQ(WireFormatNamed("float32"), WireFormat::kFloat32);
}

}  // namespace
}  // namespace medley::worker::half_floats_test
