// Trains a model from PyTorch in this process, without network and plan: losses, the gradients of the first step and
// the seconds of a step, for tests/bench/models.py to compare with PyTorch.
//
//   exported_bench SPEC.json [--steps N] [--gradients FILE]
//   exported_bench SPEC.json --hold FIRST END
//
// Prints one JSON object. FILE: for each parameter a line "NAME COUNT" and its float32 numbers.
#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/aten/make_block.h"
#include "worker/data/dataset.h"
#include "worker/model/fit_graph.h"
#include "worker/model/imported_graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/local_tables.h"

namespace medley {
namespace {

using Clock = std::chrono::steady_clock;

void Write(worker::BlockCompute& block, const worker::PreparedStep& step, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  for (size_t t = 0; t < block.Tables().size(); ++t) {
    const worker::ParameterSpec& table = block.Tables()[t];
    const auto columns = static_cast<size_t>(table.columns);
    const std::span<const float> rows = block.RowGradients(0, static_cast<int>(t));
    std::vector<float> all(static_cast<size_t>(table.Size()));
    for (size_t k = 0; k < step.tables[t].keys.size(); ++k) {
      std::ranges::copy(rows.subspan(k * columns, columns),
                        all.begin() + static_cast<ptrdiff_t>(step.tables[t].keys[k] * columns));
    }
    out << table.name << ' ' << all.size() << '\n';
    out.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(float)));
  }
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
  if (data->rows() % count != 0) return base::InvalidArgument("{} samples are no batches of {}", data->rows(), count);
  worker::LocalTables tables(block->Tables(), optimizer, spec.training.seed);
  std::vector<worker::SeatTable> seats;
  for (const worker::ParameterSpec& table : block->Tables()) seats.push_back({table});
  worker::BatchAssembler assembler(1, {}, *data, std::move(seats));
  std::vector<double> losses, seconds;
  worker::PreparedStep data_of;
  for (int step = 1; step <= steps; ++step) {
    assembler.AssembleRange(*data, int64_t{count} * (step - 1) % data->rows(), count, data_of);
    const Clock::time_point start = Clock::now();
    MEDLEY_RETURN_IF_ERROR(tables.Pull(step, data_of.tables, data_of.rows, {}));
    block->BeginStep({.step = step, .version = step - 1, .global_samples = count});
    for (size_t t = 0; t < data_of.rows.size(); ++t) block->SetRows(0, static_cast<int>(t), data_of.rows[t]);
    MEDLEY_RETURN_IF_ERROR(block->Forward({}, data_of.batch.View(0, count), {}).status());
    MEDLEY_RETURN_IF_ERROR(block->Backward({}, {}).status());
    block->Gradients();
    const double loss = block->LossSum(0) / count;
    if (step == 1 && !gradients.empty()) Write(*block, data_of, gradients);
    MEDLEY_RETURN_IF_ERROR(block->ApplyUpdate(optimizer.AtStep(step)));
    std::vector<std::span<const float>> row_gradients;
    for (size_t t = 0; t < data_of.rows.size(); ++t)
      row_gradients.push_back(block->RowGradients(0, static_cast<int>(t)));
    MEDLEY_RETURN_IF_ERROR(tables.Push(step, data_of.tables, row_gradients, count, {}));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    losses.push_back(loss);
  }
  std::ranges::sort(seconds);
  const nlohmann::json result = {{"losses", losses}, {"seconds", seconds[seconds.size() / 2]}};
  std::cout << result.dump() << std::endl;
  return absl::OkStatus();
}

// Bytes of this process in memory.
int64_t Resident() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// What a trainer needs to hold operations [first, end), before its first step.
absl::Status Hold(const std::string& path, const std::vector<int>& block) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec spec, model::ParseJobSpec(text));
  const int64_t before = Resident();
  MEDLEY_ASSIGN_OR_RETURN(const worker::Graph graph, worker::ReadGraph(spec, ""));
  MEDLEY_ASSIGN_OR_RETURN(const auto made, aten::MakeBlock(graph, {block[0], block[1]},
                                                           {.kind = worker::OptimizerKind::kSgd}, 1, nullptr, 0));
  const int64_t after = Resident();
  int64_t weights = 0, all = 0;
  for (const worker::DenseParameter& parameter : made->Parameters()) weights += parameter.spec.Size() * 4;
  for (const worker::ParameterSpec& parameter : graph.Parameters(false)) all += parameter.Size() * 4;
  const nlohmann::json result = {{"weights", weights}, {"resident", after - before}, {"model", all}};
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
  std::vector<int> block;
  app.add_option("--hold", block, "only hold operations FIRST to END - 1, and print the memory that it takes")
      ->expected(2);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = block.empty() ? medley::Run(spec, steps, gradients) : medley::Hold(spec, block);
  if (!status.ok()) std::cerr << "exported_bench: " << medley::base::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
