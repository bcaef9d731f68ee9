// Random models, plans and schedules: what a program computes equals what the papers' equations say.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "common/program/check.h"
#include "common/program/compile.h"
#include "tests/unit/common/program/random_plan.h"
#include "tests/unit/common/program/toy_interpreter.h"

namespace medley::program::toy {
namespace {

constexpr uint64_t kSeed = 20240613;
constexpr int kInstances = 2000;

// The first difference, or nothing.
std::string Compare(const Program& program, const Recipe& recipe, Interpreter& interpreter, const Reference& reference,
                    int step) {
  const auto differ = [](double a, double b) { return !(std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b))); };
  for (int b = 0; b < static_cast<int>(program.blocks.size()); ++b) {
    const Block& block = program.blocks[static_cast<size_t>(b)];
    for (int r = 0; r < program.layouts[static_cast<size_t>(block.layout)].replicas(); ++r) {
      const State& state = reference.At(recipe.samples.size() > 1 ? static_cast<size_t>(r) : 0, step);
      for (int i = block.operations.first; i < block.operations.end; ++i) {
        if (recipe.ops[static_cast<size_t>(i)].kind != OpKind::kDense) continue;
        const Weights& mine = interpreter.Dense(b, r, step)[static_cast<size_t>(i - block.operations.first)];
        const Weights& right = state.dense[static_cast<size_t>(i)];
        if (differ(mine.w, right.w) || differ(mine.b, right.b) || differ(mine.w_squares, right.w_squares)) {
          return fmt::format("operation {} on replica {} after step {}: {} instead of {}", i, r, step, mine.w, right.w);
        }
      }
    }
    for (const int table : block.tables) {
      for (size_t row = 0; row < kRows; ++row) {
        const double mine = interpreter.Rows(table, step)[row].w;
        const double right = reference.At(0, step).rows[static_cast<size_t>(table)][row].w;
        if (differ(mine, right)) return fmt::format("row {} of {}: {} instead of {}", row, table, mine, right);
      }
    }
  }
  return "";
}

// Trains 7 steps with a drain in between, then evaluates. Returns what is wrong.
std::string Try(const Instance& instance, const Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Recipe& recipe = instance.recipe;
  Interpreter interpreter(program, recipe.ops, recipe.count, recipe.adagrad, random());
  Reference reference(recipe);
  std::set<int> agrees;
  const bool may = recipe.samples.size() > 1 && instance.plan.placements[0].sync.mode != model::SyncMode::kNone;
  const int drain = 1 + static_cast<int>(random() % 5), last = 6;
  for (int step = 0; step <= last; ++step) {
    if (recipe.samples.size() > 1 && ((may && random() % 3 == 0) || step == drain - 1 || step == last)) {
      agrees.insert(step);
    }
  }
  for (const auto& [first, end] : {std::pair{0, drain}, std::pair{drain, last + 1}}) {
    if (!interpreter.Run(first, end, agrees)) return interpreter.error();
    for (int step = first; step < end; ++step) {
      const double loss = reference.Step(step, first - 1, agrees.contains(step));
      if (std::abs(loss - interpreter.loss(step)) > 1e-9) {
        return fmt::format("loss of step {}: {} instead of {}", step, interpreter.loss(step), loss);
      }
    }
    const std::string difference = Compare(program, recipe, interpreter, reference, end - 1);
    if (!difference.empty()) return difference;
  }
  const auto evaluation = CompileEvaluation(instance.plan, instance.model);
  if (!evaluation.ok()) return "evaluation: " + std::string(evaluation.status().message());
  Interpreter scores(*evaluation, recipe.ops, recipe.count, recipe.adagrad, random());
  scores.CopyState(interpreter, last);
  if (!scores.Run(0, 5, {})) return "evaluation: " + scores.error();
  for (int step = 0; step < 5; ++step) {
    const double loss = reference.Evaluate(step, last);
    if (std::abs(loss - scores.loss(step)) > 1e-9) {
      return fmt::format("evaluation of {}: {} instead of {}", step, scores.loss(step), loss);
    }
  }
  return "";
}

TEST(Program, ComputesWhatThePapersSayOnRandomPlans) {
  const char* given = std::getenv("MEDLEY_PROGRAM_SEED");  // one instance, with its program
  const char* more = std::getenv("MEDLEY_PROGRAM_INSTANCES");
  const uint64_t seed = given == nullptr ? kSeed : std::strtoull(given, nullptr, 10);
  const int instances = given != nullptr ? 1 : more != nullptr ? std::atoi(more) : kInstances;
  int refused = 0, failed = 0;
  for (int i = 0; i < instances; ++i) {
    Instance instance = Generator(seed + static_cast<uint64_t>(i)).Make();
    const auto program = Compile(instance.plan, instance.model);
    if (!program.ok()) {
      ++refused;
      ASSERT_TRUE(absl::IsUnimplemented(program.status()) || absl::IsInvalidArgument(program.status()))
          << "seed " << seed + static_cast<uint64_t>(i) << ": " << program.status();
      continue;
    }
    const std::string wrong = Try(instance, *program, seed + static_cast<uint64_t>(i));
    if (wrong.empty()) continue;
    ADD_FAILURE() << "MEDLEY_PROGRAM_SEED=" << seed + static_cast<uint64_t>(i) << ": " << wrong
                  << (given == nullptr ? "" : "\n" + Text(*program, {}));
    if (++failed == 5) break;
  }
  std::printf("seeds %llu to %llu: %d refused\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(seed) + static_cast<unsigned long long>(instances) - 1, refused);
  EXPECT_LE(refused * 5, std::max(instances, 5));
}

// A program whose lists were changed is refused, or it still ends and computes the same: what the check accepts, no
// execution can get stuck in.
TEST(Program, WhatTheCheckAcceptsEndsInEveryOrder) {
  std::mt19937_64 random(kSeed);
  int accepted = 0, refused = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    const Instance instance = Generator(kSeed + i).Make();
    auto program = Compile(instance.plan, instance.model);
    if (!program.ok()) continue;
    List& list = program->lists[random() % program->lists.size()];
    const size_t size = list.instructions.size();
    std::swap(list.instructions[random() % size], list.instructions[random() % size]);
    if (const absl::Status status = Check(*program); !status.ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    ASSERT_EQ(Try(instance, *program, i), "") << "seed " << kSeed + i << "\n" << Text(*program, {});
  }
  std::printf("%d accepted, %d refused\n", accepted, refused);
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace medley::program::toy
