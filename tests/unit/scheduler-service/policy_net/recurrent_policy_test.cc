// Compares the policy's passes with finite differences and with PyTorch (tests/golden/policy_net).
#include "scheduler-service/policy_net/recurrent_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/policy_net/reinforce.h"

namespace medley::sched::policy_net {
namespace {

constexpr int kFeatures = 5, kActions = 3, kHidden = 4, kSteps = 6, kSamples = 3;

// The same values as in make_golden.py.
PolicyInputs Inputs() {
  PolicyInputs inputs;
  inputs.steps = kSteps;
  for (int i = 0; i < kSteps * kFeatures; ++i) inputs.features.push_back(static_cast<float>(std::cos(0.3 * i)));
  inputs.allowed.assign(kSteps * kActions, 1);
  inputs.allowed[1 * kActions + 2] = 0;
  inputs.allowed[4 * kActions + 2] = 0;
  return inputs;
}

const std::vector<int> kTaken = {0, 1, 2, 2, 0, 1, 1, 1, 0, 2, 1, 1, 2, 0, 0, 0, 0, 0};
const std::vector<double> kWeights = {0.5, -1.25, 2.0};
constexpr double kEntropyWeight = 0.3;

PolicyShape Shape(CellKind cell) { return {cell, kFeatures, kActions, kHidden}; }

RecurrentPolicy<double> Policy(CellKind cell) {
  std::vector<double> parameters(ParameterLayout(Shape(cell)).size);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] = std::sin(1 + 0.7 * static_cast<double>(i)) * 0.6;
  return {Shape(cell), std::move(parameters)};
}

double Objective(const RecurrentPolicy<double>& policy) {
  Rollout<double> rollout;
  policy.Follow(Inputs(), kTaken, rollout);
  double sum = kEntropyWeight * rollout.entropy * kSteps * kSamples;
  for (size_t n = 0; n < kWeights.size(); ++n) sum += kWeights[n] * rollout.log_probability[n];
  return sum;
}

std::vector<double> Gradient(const RecurrentPolicy<double>& policy) {
  Rollout<double> rollout;
  policy.Follow(Inputs(), kTaken, rollout);
  std::vector<double> gradient(policy.parameters().size());
  policy.AddGradient(Inputs(), rollout, kWeights, kEntropyWeight, gradient);
  return gradient;
}

class CellTest : public testing::TestWithParam<CellKind> {};

TEST_P(CellTest, GradientIsThatOfFiniteDifferences) {
  RecurrentPolicy<double> policy = Policy(GetParam());
  const std::vector<double> gradient = Gradient(policy);
  constexpr double kStep = 1e-6;
  double largest = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double before = policy.parameters()[i];
    policy.parameters()[i] = before + kStep;
    const double above = Objective(policy);
    policy.parameters()[i] = before - kStep;
    const double below = Objective(policy);
    policy.parameters()[i] = before;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << "parameter " << i;
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 0.1) << "the test must be about something";
}

TEST_P(CellTest, ValuesAndGradientsAreThoseOfPyTorch) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "run by ctest";
  const auto text = base::ReadFile(std::string(source) + "/tests/golden/policy_net/cells.txt");
  ASSERT_THAT(text, base::IsOk());
  std::map<std::string, std::vector<double>> golden;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string cell, what;
    words >> cell >> what;
    for (double number = 0; words >> number;) golden[cell + " " + what].push_back(number);
  }
  const std::string cell = GetParam() == CellKind::kLstm ? "lstm " : "elman ";
  const RecurrentPolicy<double> policy = Policy(GetParam());
  Rollout<double> rollout;
  policy.Follow(Inputs(), kTaken, rollout);
  ASSERT_EQ(golden[cell + "log_probability"].size(), size_t{kSamples});
  for (size_t n = 0; n < kSamples; ++n) {
    EXPECT_NEAR(rollout.log_probability[n], golden[cell + "log_probability"][n], 1e-6);
  }
  ASSERT_EQ(golden[cell + "entropy"].size(), 1U);
  EXPECT_NEAR(rollout.entropy, golden[cell + "entropy"][0], 1e-6);
  const std::vector<double> gradient = Gradient(policy);
  ASSERT_EQ(golden[cell + "gradient"].size(), gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(gradient[i], golden[cell + "gradient"][i], 1e-6) << "parameter " << i;  // features are float32 here
  }
}

TEST_P(CellTest, FloatIsDoubleToSingleAccuracy) {
  const RecurrentPolicy<double> policy = Policy(GetParam());
  const RecurrentPolicy<float> narrow(policy.shape(), {policy.parameters().begin(), policy.parameters().end()});
  Rollout<float> rollout;
  narrow.Follow(Inputs(), kTaken, rollout);
  std::vector<float> gradient(narrow.parameters().size());
  const std::vector<float> weights(kWeights.begin(), kWeights.end());
  narrow.AddGradient(Inputs(), rollout, weights, static_cast<float>(kEntropyWeight), gradient);
  const std::vector<double> wide = Gradient(policy);
  for (size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(gradient[i], wide[i], 2e-5) << "parameter " << i;
}

TEST_P(CellTest, SamplesFollowTheProbabilities) {
  const RecurrentPolicy<double> policy = Policy(GetParam());
  constexpr int kDraws = 20000;
  base::Rng rng(11);
  Rollout<double> drawn;
  policy.Sample(Inputs(), kDraws, rng, drawn);
  std::map<std::vector<int>, int> counts;
  for (int n = 0; n < kDraws; ++n) {
    const auto actions = drawn.Actions(n);
    ASSERT_NE(actions[1], 2) << "not allowed";
    ASSERT_NE(actions[4], 2) << "not allowed";
    ++counts[{actions.begin(), actions.end()}];
  }
  int checked = 0;
  for (const auto& [actions, count] : counts) {
    Rollout<double> one;
    policy.Follow(Inputs(), actions, one);
    const double expected = kDraws * std::exp(one.log_probability[0]);
    if (expected < 100) continue;
    ++checked;
    EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << "seed 11";
  }
  EXPECT_GT(checked, 5);
}

TEST_P(CellTest, NewPoliciesPersistAndAreTheSameForASeed) {
  PolicyInputs inputs = Inputs();
  inputs.allowed.assign(kSteps * kActions, 1);
  base::Rng rng(5), again(5);
  const RecurrentPolicy<float> policy(Shape(GetParam()), 0.8, rng);
  EXPECT_EQ(policy.parameters(), RecurrentPolicy<float>(Shape(GetParam()), 0.8, again).parameters());
  Rollout<float> rollout;
  policy.Sample(inputs, 4000, rng, rollout);
  double kept = 0;
  for (int n = 0; n < rollout.samples; ++n) {
    const auto actions = rollout.Actions(n);
    for (size_t t = 1; t < kSteps; ++t) kept += actions[t] == actions[t - 1] ? 1 : 0;
  }
  EXPECT_NEAR(kept / (4000 * (kSteps - 1)), 0.8, 0.05);
}

TEST_P(CellTest, ReinforceFindsTheOneGoodSequence) {
  const PolicyInputs inputs = Inputs();
  const std::vector<int> target = {2, 0, 1, 2, 1, 0};
  base::Rng rng(3);
  RecurrentPolicy<float> policy({GetParam(), kFeatures, kActions, 16}, 0.5, rng);
  Reinforce reinforce(policy, inputs,
                      {.samples_per_round = 32,
                       .learning_rate = 0.02,
                       .baseline_decay = 0.1,
                       .entropy_bonus = 0.5,
                       .entropy_decay = 0.97,
                       .advantage_clip = 10,
                       .clip_norm = 1});
  const SequenceCost cost = [&](std::span<const int> actions) {
    double wrong = 0;
    for (size_t t = 0; t < target.size(); ++t) wrong += actions[t] == target[t] ? 0 : 1;
    return wrong;
  };
  RoundResult last;
  for (int round = 0; round < 200; ++round) last = reinforce.Round(cost, rng);
  EXPECT_EQ(policy.Greedy(inputs), target);
  EXPECT_LT(last.mean_cost, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Cells, CellTest, testing::Values(CellKind::kLstm, CellKind::kElman),
                         [](const auto& cell) { return cell.param == CellKind::kLstm ? "Lstm" : "Elman"; });

}  // namespace
}  // namespace medley::sched::policy_net
