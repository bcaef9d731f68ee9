// Trains a model from PyTorch in this process, without network and plan: losses, the gradients of the first step and
// the seconds of a step, for tests/bench/models.py to compare with PyTorch.
//
//   exported_bench SPEC.json [--steps N] [--gradients FILE]
//
// Prints one JSON object. FILE: for each parameter a line "NAME COUNT" and its float32 numbers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/aten/make_block.h"
#include "worker/data/dataset.h"
#include "worker/model/fit_graph.h"
#include "worker/params/optimizer_of.h"

namespace medley {
namespace {

using Clock = std::chrono::steady_clock;

void Write(worker::BlockCompute& block, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  for (const worker::DenseParameter& parameter : block.Parameters()) {
    if (parameter.spec.role != worker::ParameterRole::kTrained) continue;
    out << parameter.spec.name << ' ' << parameter.gradient.size() << '\n';
    out.write(reinterpret_cast<const char*>(parameter.gradient.data()),
              static_cast<std::streamsize>(parameter.gradient.size_bytes()));
  }
}

absl::Status Run(const std::string& path, int steps, const std::string& gradients) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec spec, model::ParseJobSpec(text));
  MEDLEY_RETURN_IF_ERROR(model::Validate(spec));
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const worker::Dataset> data,
                          worker::Dataset::Load(spec.data.train, spec.data, nullptr, {}));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Graph graph, worker::FitGraph(spec, *data));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Optimizer optimizer, worker::OptimizerOf(spec.training));
  const int operations = static_cast<int>(graph.operations.size());
  MEDLEY_ASSIGN_OR_RETURN(const auto block, aten::MakeBlock(graph, {0, operations}, optimizer, spec.training.seed));
  const int count = spec.training.batch_size;
  std::vector<double> losses, seconds;
  worker::Batch batch;
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int step = 1; step <= steps; ++step) {
    std::iota(rows.begin(), rows.end(), int64_t{count} * (step - 1));
    for (int64_t& row : rows) row %= data->rows();
    data->Gather(rows, batch);
    const Clock::time_point start = Clock::now();
    block->BeginStep({.step = step, .version = step - 1, .global_samples = count});
    MEDLEY_RETURN_IF_ERROR(block->Forward({}, batch.View(0, count), {}).status());
    MEDLEY_RETURN_IF_ERROR(block->Backward({}, {}).status());
    block->Gradients();
    const double loss = block->LossSum(0) / count;
    if (step == 1 && !gradients.empty()) Write(*block, gradients);
    MEDLEY_RETURN_IF_ERROR(block->ApplyUpdate(optimizer.AtStep(step)));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    losses.push_back(loss);
  }
  std::ranges::sort(seconds);
  const nlohmann::json result = {{"losses", losses}, {"seconds", seconds[seconds.size() / 2]}};
  std::cout << result.dump() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley

int main(int argc, char** argv) {
  CLI::App app{"Trains a model from PyTorch in this process."};
  std::string spec, gradients;
  int steps = 20;
  app.add_option("spec", spec, "the job's spec as JSON")->required();
  app.add_option("--steps", steps, "number of steps")->check(CLI::Range(1, 100000));
  app.add_option("--gradients", gradients, "file for the gradients of step 1");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = medley::Run(spec, steps, gradients);
  if (!status.ok()) std::cerr << "exported_bench: " << medley::base::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
