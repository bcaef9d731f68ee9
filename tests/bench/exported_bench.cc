// Trains a model from PyTorch, or one of Medley's layers, in this process, without network and plan: losses, the
// gradients of the first step and the seconds of a step, for tests/bench/models.py and tests/gpu to compare with
// PyTorch.
//
//   exported_bench SPEC.json [--device cpu|cuda] [--rows host|device|cache] [--steps N] [--gradients FILE]
//                  [--no-graphs]
//   exported_bench SPEC.json --hold FIRST END
//
// Prints one JSON object. "seconds": the median of a step; "mean_seconds": the mean after the first eight, of few steps
// after half of them. "memory": what the process holds of the host's memory, and what is used of the GPU's, five times.
// "bytes_in", "bytes_out": what a step copied to the GPU and from it. "recordings": of kernels that a GPU does again.
// FILE: for each parameter a line "NAME COUNT" and its float32 numbers.
#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/aten/make_block.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"
#include "worker/device/testing/counting_device.h"
#include "worker/device/unrecorded_device.h"
#include "worker/model/fit_graph.h"
#include "worker/model/imported_graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/local_tables.h"
#include "worker/pipeline/recorded_work.h"
#include "worker/pipeline/whole_tables.h"

namespace medley {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWarmUp = 8;  // steps that "mean_seconds" leaves out, in which a GPU also records kernels

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
  const std::vector<worker::DenseParameter> parameters = block.Parameters();
  for (size_t p = 0; p < parameters.size(); ++p) {
    const worker::ParameterSpec& spec = parameters[p].spec;
    if (spec.role != worker::ParameterRole::kTrained) continue;
    std::vector<float> gradient(static_cast<size_t>(spec.Size()));
    if (!block.ReadValues(p, worker::DensePart::kGradient, 0, gradient).ok()) continue;  // the reader misses it
    out << spec.name << ' ' << gradient.size() << '\n';
    out.write(reinterpret_cast<const char*>(gradient.data()),
              static_cast<std::streamsize>(gradient.size() * sizeof(float)));
  }
}

// Bytes of this process in memory.
int64_t Resident() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

absl::StatusOr<std::shared_ptr<worker::device::CountingDevice>> OpenDevice(const std::string& name) {
  if (name == "cpu") return nullptr;
  MEDLEY_ASSIGN_OR_RETURN(auto gpu, worker::device::OpenGpu());
  return std::make_shared<worker::device::CountingDevice>(std::move(gpu));
}

absl::StatusOr<nlohmann::json> HeldAt(int step, const worker::device::CountingDevice* gpu) {
  nlohmann::json held = {{"step", step}, {"host", Resident()}};
  if (gpu == nullptr) return held;
  MEDLEY_ASSIGN_OR_RETURN(const worker::device::DeviceMemory memory, gpu->Memory());
  held["device"] = memory.total - memory.free;
  return held;
}

// The tables of the block: with "device" there, with "cache" a tenth of their rows.
absl::StatusOr<std::shared_ptr<worker::WholeTables>> MakeTables(worker::BlockCompute& block, const std::string& rows,
                                                                worker::device::CountingDevice* gpu,
                                                                const worker::Optimizer& optimizer, uint64_t seed) {
  worker::TableKeeper* const keeper = rows == "host" ? nullptr : worker::KeeperOf(block);
  if (rows == "cache" && gpu != nullptr) {
    double bytes = 0;
    for (const worker::ParameterSpec& table : block.Tables()) bytes += 4.0 * static_cast<double>(table.Size());
    bytes *= static_cast<double>(1 + worker::StateFloats(optimizer.kind));
    gpu->SetMostFree(static_cast<int64_t>(0.2 * bytes));  // of which a cache takes half
  }
  if (keeper == nullptr) return std::make_shared<worker::LocalTables>(block.Tables(), optimizer, seed);
  MEDLEY_ASSIGN_OR_RETURN(auto tables, keeper->MakeTables(optimizer, seed, /*kept_updates=*/1));
  if (tables == nullptr) return base::InvalidArgument("--rows {}: the device has no memory for the tables", rows);
  return tables;
}

absl::Status Run(const std::string& path, const std::string& device, const std::string& rows, int steps,
                 const std::string& gradients, bool graphs) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec spec, model::ParseJobSpec(text));
  MEDLEY_RETURN_IF_ERROR(model::Validate(spec));
  MEDLEY_ASSIGN_OR_RETURN(
      const std::shared_ptr<const worker::Dataset> data,
      worker::Dataset::Load(spec.data.train, spec.data, nullptr, {.embedding_rows = spec.model.embedding_rows}));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Graph graph, worker::FitGraph(spec, *data));
  MEDLEY_ASSIGN_OR_RETURN(const worker::Optimizer optimizer, worker::OptimizerOf(spec.training));
  const int operations = static_cast<int>(graph.operations.size());
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<worker::device::CountingDevice> gpu, OpenDevice(device));
  std::shared_ptr<worker::device::Device> computes = gpu;
  if (gpu != nullptr && !graphs) computes = std::make_shared<worker::device::UnrecordedDevice>(gpu);
  MEDLEY_ASSIGN_OR_RETURN(
      const auto block,
      worker::aten::MakeBlock(graph, {0, operations},
                              {.optimizer = optimizer, .seed = spec.training.seed, .device = computes}));
  const int count = spec.training.batch_size;
  if (data->rows() % count != 0) return base::InvalidArgument("{} samples are no batches of {}", data->rows(), count);
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<worker::WholeTables> tables,
                          MakeTables(*block, rows, gpu.get(), optimizer, spec.training.seed));
  worker::TableKeeper* const keeper = rows == "host" ? nullptr : worker::KeeperOf(*block);
  std::vector<worker::SeatTable> seats;
  for (const worker::ParameterSpec& table : block->Tables()) seats.push_back({table});
  worker::BatchAssembler assembler(1, {}, *data, std::move(seats));
  std::vector<double> losses, seconds;
  nlohmann::json memory = nlohmann::json::array();
  size_t in_before = 0, out_before = 0;  // the last step
  worker::PreparedStep data_of;
  for (int step = 1; step <= steps; ++step) {
    assembler.AssembleRange(*data, int64_t{count} * (step - 1) % data->rows(), count, data_of);
    if (gpu != nullptr) in_before = gpu->bytes_in(), out_before = gpu->bytes_out();
    const Clock::time_point start = Clock::now();
    MEDLEY_RETURN_IF_ERROR(tables->Pull(step, data_of.tables, data_of.rows, {}));
    block->BeginStep({.step = step, .version = step - 1, .global_samples = count});
    for (size_t t = 0; t < data_of.rows.size(); ++t) {
      if (keeper != nullptr) keeper->SetKeys(0, static_cast<int>(t), data_of.tables[t].keys);
      block->SetRows(0, static_cast<int>(t), data_of.rows[t]);
    }
    MEDLEY_RETURN_IF_ERROR(block->Forward({}, data_of.batch.View(0, count), {}).status());
    MEDLEY_RETURN_IF_ERROR(block->Backward({}, {}).status());
    const double loss = block->LossSum(0) / count;
    if (step == 1 && !gradients.empty()) Write(*block, data_of, gradients);
    MEDLEY_RETURN_IF_ERROR(block->ApplyUpdate(optimizer.AtStep(step)));
    std::vector<std::span<const float>> row_gradients;
    for (size_t t = 0; t < data_of.rows.size(); ++t)
      row_gradients.push_back(block->RowGradients(0, static_cast<int>(t)));
    MEDLEY_RETURN_IF_ERROR(tables->Push(step, data_of.tables, row_gradients, count, {}));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    losses.push_back(loss);
    if (step % std::max(1, steps / 5) != 0) continue;
    MEDLEY_ASSIGN_OR_RETURN(nlohmann::json held, HeldAt(step, gpu.get()));
    memory.push_back(std::move(held));
  }
  const std::span<const double> warm = std::span(seconds).subspan(std::min<size_t>(seconds.size() / 2, kWarmUp));
  const double mean = std::accumulate(warm.begin(), warm.end(), 0.0) / static_cast<double>(warm.size());
  std::ranges::sort(seconds);
  nlohmann::json result = {
      {"losses", losses}, {"seconds", seconds[seconds.size() / 2]}, {"mean_seconds", mean}, {"memory", memory}};
  if (gpu != nullptr) {
    result["device"] = gpu->name();
    result["bytes_in"] = gpu->bytes_in() - in_before;
    result["bytes_out"] = gpu->bytes_out() - out_before;
  }
  if (const auto* const records = dynamic_cast<const worker::RecordsWork*>(block.get()); records != nullptr) {
    const worker::RecordingCounts counts = records->Recordings();
    result["recordings"] = {{"made", counts.recorded},
                            {"done_again", counts.replayed},
                            {"one_by_one", counts.one_by_one},
                            {"bytes", counts.bytes},
                            {"reason", counts.reason}};
  }
  std::cout << result.dump() << std::endl;
  return absl::OkStatus();
}

// What a trainer needs to hold operations [first, end), before its first step.
absl::Status Hold(const std::string& path, const std::vector<int>& block) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec spec, model::ParseJobSpec(text));
  const int64_t before = Resident();
  MEDLEY_ASSIGN_OR_RETURN(const worker::Graph graph, worker::ReadGraph(spec, ""));
  MEDLEY_ASSIGN_OR_RETURN(const auto made, worker::aten::MakeBlock(graph, {block[0], block[1]},
                                                                   {.optimizer = {.kind = worker::OptimizerKind::kSgd},
                                                                    .kept_updates = 0}));
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
  CLI::App app{"Trains a model in this process."};
  std::string spec, gradients, device = "cpu", rows = "host";
  int steps = 20;
  app.add_option("spec", spec, "the job's spec as JSON")->required();
  app.add_option("--device", device, "what computes: cpu, or cuda for the first GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--rows", rows,
                 "where the rows of Medley's own layers are; device, or cache (a tenth of them): with --device cuda")
      ->check(CLI::IsMember({"host", "device", "cache"}));
  app.add_option("--steps", steps, "number of steps")->check(CLI::Range(1, 100000));
  app.add_option("--gradients", gradients, "file for the gradients of step 1");
  bool no_graphs = false;
  app.add_flag("--no-graphs", no_graphs, "give a GPU all kernels one by one");
  std::vector<int> block;
  app.add_option("--hold", block, "only hold operations FIRST to END - 1, and print the memory that it takes")
      ->expected(2);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status =
      block.empty() ? medley::Run(spec, device, rows, steps, gradients, !no_graphs) : medley::Hold(spec, block);
  if (!status.ok()) std::cerr << "exported_bench: " << medley::base::Message(status) << '\n';
  return status.ok() ? 0 : 1;
}
