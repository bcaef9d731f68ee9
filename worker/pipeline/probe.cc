#include "worker/pipeline/probe.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr base::nanoseconds kProbeTime = base::milliseconds(50);
constexpr int kMostProbePasses = 256;
constexpr base::nanoseconds kLongestPause = base::milliseconds(100);
constexpr base::nanoseconds kLongestProbe = base::seconds(1);

std::vector<std::span<const float>> SpansOf(const std::vector<BlockValue>& values, int samples,
                                            std::vector<float>& zeros) {
  size_t widest = 0;
  for (const BlockValue& value : values) widest = std::max(widest, static_cast<size_t>(value.width));
  zeros.assign(widest * static_cast<size_t>(samples), 0);
  std::vector<std::span<const float>> spans;
  for (const BlockValue& value : values) {
    spans.emplace_back(zeros.data(), static_cast<size_t>(value.width) * static_cast<size_t>(samples));
  }
  return spans;
}

absl::Status PassMicro(const ProbedBlock& block, const PreparedStep& step, int micro) {
  const SampleRange mine = step.micros[block.seat][static_cast<size_t>(micro)];
  std::vector<float> zero_inputs, zero_gradients;
  const auto inputs = SpansOf(block.compute->Inputs(), mine.count, zero_inputs);
  const auto gradients = SpansOf(block.compute->Outputs(), mine.count, zero_gradients);
  const Pass pass{.slot = 0, .micro = micro};
  MEDLEY_RETURN_IF_ERROR(block.compute->Forward(pass, step.batch.View(mine.first, mine.count), inputs).status());
  return block.compute->Backward(pass, gradients).status();
}

absl::Status PassStep(const ProbedWork& work, const PreparedStep& step) {
  size_t table = 0;
  for (const ProbedBlock& block : work.blocks) {
    const int64_t applied = block.compute->AppliedStep();
    block.compute->BeginStep({.step = applied + 1,
                              .version = applied,
                              .slot = 0,
                              .micro_batches = work.micro_batches,
                              .global_samples = block.global_samples});
    for (size_t t = 0; t < block.compute->Tables().size(); ++t, ++table) {
      const TableKeys& keys = step.tables[table];
      const std::vector<float> zeros(keys.keys.size() * static_cast<size_t>(keys.columns), 0);
      block.compute->SetRows(0, static_cast<int>(t), zeros);
    }
    for (int micro = 0; micro < work.micro_batches; ++micro) MEDLEY_RETURN_IF_ERROR(PassMicro(block, step, micro));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> ProbePasses(const ProbedWork& work, int count, base::nanoseconds pause) {
  pause = std::clamp(pause, base::nanoseconds(0), kLongestPause);
  PreparedStep step;
  BatchAssembler assembler(work.micro_batches, work.share, *work.data, work.tables);
  MEDLEY_RETURN_IF_ERROR(assembler.Assemble({.step = 1, .data_epoch = 0, .first = 0, .count = count}, {}, step));
  MEDLEY_RETURN_IF_ERROR(PassStep(work, step));
  const base::SteadyTime start = work.clock->Steady();
  base::nanoseconds taken{0};
  int times = 0;
  base::SteadyTime begins = start;
  while (times == 0 || (taken < kProbeTime && times < kMostProbePasses && begins - start < kLongestProbe)) {
    if (pause > base::nanoseconds(0)) work.clock->SleepUntil(begins, {});
    MEDLEY_RETURN_IF_ERROR(PassStep(work, step));
    const base::SteadyTime end = work.clock->Steady();
    taken += end - begins;
    begins = end + pause;
    ++times;
  }
  return base::ToSeconds(taken) / times;
}

}  // namespace medley::worker
