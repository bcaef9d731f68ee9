// Conversion of policies to bytes and back, and errors for invalid bytes.
#include "scheduler-service/policy_net/trained_policy.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"

namespace medley::sched::policy_net {
namespace {

TrainedPolicy Example(CellKind cell = CellKind::kLstm) {
  TrainedPolicy policy;
  policy.shape = {cell, 7, 2, 3};
  policy.actions = {"cpu", "v100"};
  policy.scales = {{1.5, 2}, {0, 1}, {-3, 0.25}};
  policy.updates = 42;
  base::Rng rng(1);
  policy.parameters.resize(ParameterLayout(policy.shape).size);
  for (float& p : policy.parameters) p = static_cast<float>(rng.Uniform(-1, 1));
  return policy;
}

// Corrects the checksum of modified bytes, so that the other checks are reached.
std::string Resealed(std::string bytes) {
  bytes.resize(bytes.size() - sizeof(uint64_t));
  const uint64_t sum = base::Hash64(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return bytes;
}

void ExpectRefused(const std::string& bytes, const std::string& why) {
  const auto policy = PolicyFromBytes(bytes);
  ASSERT_THAT(policy, base::StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_NE(std::string(policy.status().message()).find(why), std::string::npos) << policy.status().message();
}

TEST(TrainedPolicyTest, RoundTrip) {
  for (const CellKind cell : {CellKind::kLstm, CellKind::kElman}) {
    const auto policy = PolicyFromBytes(ToBytes(Example(cell)));
    ASSERT_THAT(policy, base::IsOk());
    EXPECT_EQ(*policy, Example(cell));
  }
}

TEST(TrainedPolicyTest, ErrorsDescribeTheProblem) {
  const std::string good = ToBytes(Example());
  ExpectRefused("", "not a policy");
  ExpectRefused("model: {}", "not a policy");
  ExpectRefused(good.substr(0, 10), "truncated");
  ExpectRefused(good.substr(0, good.size() - 1), "damaged");
  std::string version = good;
  version[7] = 9;
  ExpectRefused(Resealed(version), "version 9");
  std::string hidden = good;
  hidden[8 + 1 + 8] = 100;  // the hidden units' lowest byte
  ExpectRefused(Resealed(hidden), "bytes of parameters");
  hidden[8 + 1 + 8 + 3] = 0x7f;
  ExpectRefused(Resealed(hidden), "invalid sizes");
  TrainedPolicy twice = Example();
  twice.actions[1] = "cpu";
  ExpectRefused(ToBytes(twice), "duplicate");
  TrainedPolicy infinite = Example();
  infinite.parameters[5] = std::numeric_limits<float>::infinity();
  ExpectRefused(ToBytes(infinite), "not finite");
  TrainedPolicy flat = Example();
  flat.scales[1].scale = 0;
  ExpectRefused(ToBytes(flat), "not a positive number");
}

TEST(TrainedPolicyTest, EveryFlippedBitIsDetected) {
  const std::string good = ToBytes(Example());
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    ASSERT_FALSE(PolicyFromBytes(bad).ok()) << "bit " << i;
  }
}

TEST(TrainedPolicyTest, MutationsWithAValidChecksumNeverGiveAnInvalidPolicy) {
  const std::string good = ToBytes(Example());
  base::Rng rng(7);
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (uint64_t i = 0; i <= rng.Below(4); ++i) {
      bad[8 + rng.Below(bad.size() - 8)] = static_cast<char>(rng.Below(256));
    }
    if (rng.Below(3) == 0) bad.resize(16 + rng.Below(bad.size() - 16));
    const auto policy = PolicyFromBytes(Resealed(bad));
    if (!policy.ok()) {
      ASSERT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument) << "seed 7, round " << round;
      continue;
    }
    ++taken;  // a mutation of parameters and scales can be valid
    ASSERT_EQ(policy->parameters.size(), ParameterLayout(policy->shape).size);
    ASSERT_EQ(policy->actions.size(), static_cast<size_t>(policy->shape.actions));
  }
  EXPECT_GT(taken, 100);
  EXPECT_LT(taken, 20000);
}

}  // namespace
}  // namespace medley::sched::policy_net
