// Measures the kernels of a training step against the roof of one core: `./dev bench kernels`.
//
// For each kernel, of a CTR-DNN of Criteo's shape: the bytes that it must read and write at least once, its float32
// operations, its rate, and the share of the most that the machine allows, which is the smaller of its peak of
// operations and the operations a byte times the bandwidth of memory of that size. Peak and bandwidth are measured here
// too, in turn with the kernels, on one thread, in seconds of processor time; medians count. A kernel that passes
// over its data more than once cannot reach the roof: the last column says which parts are fused.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/processor_time.h"
#include "common/base/rng.h"
#include "tests/bench/machine_limits.h"
#include "worker/model/compute_threads.h"
#include "worker/model/dense_store.h"
#include "worker/model/kernels.h"

namespace medley::worker {
namespace {

constexpr int kFields = 26, kNumerics = 13;
constexpr double kFloat = sizeof(float);

struct KernelOptions {
  int64_t batch = 512;
  int64_t dim = 10;     // of an embedding
  int64_t width = 400;  // of a layer
  int rounds = 5;
  double seconds = 0.1;  // of processor time, of one measurement
};

std::vector<float> Random(int64_t floats, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(floats));
  for (float& value : values) value = static_cast<float>(rng.Uniform()) - 0.5F;
  return values;
}

struct Kernel {
  std::string name;
  double bytes = 0;  // at least
  double flops = 0;
  std::function<void()> run;
  std::string fused;
  std::vector<double> seconds = {};
};

// Buffers of a layer and its kernels.
class Layer {
 public:
  Layer(const KernelOptions& options, int64_t inputs)
      : samples_(options.batch),
        inputs_(inputs),
        outputs_(options.width),
        x_(Random(samples_ * inputs, 1)),
        w_(Random(inputs * outputs_, 2)),
        bias_(Random(outputs_, 3)),
        y_(Random(samples_ * outputs_, 4)),
        dy_(Random(samples_ * outputs_, 5)),
        dz_(dy_.size()),
        dx_(x_.size()),
        dw_(w_.size()),
        db_(bias_.size()) {}

  void Add(std::vector<Kernel>& kernels) {
    const auto m = static_cast<double>(samples_), k = static_cast<double>(inputs_), n = static_cast<double>(outputs_);
    const std::string shape = fmt::format("{} x {} -> {}", samples_, inputs_, outputs_);
    kernels.push_back({"linear + bias + relu, forward, " + shape, kFloat * (m * k + k * n + n + m * n),
                       2 * m * k * n + 2 * m * n, [this] { Forward(); }, "no: bias, product and relu, three passes"});
    kernels.push_back({"linear + bias + relu, backward, " + shape, kFloat * (2 * m * n + 2 * m * k + 2 * k * n + n),
                       4 * m * k * n + 2 * m * n, [this] { Backward(); },
                       "relu and bias in one pass, then two products"});
    kernels.push_back({"one matrix product of these, " + shape, kFloat * (m * k + k * n + m * n), 2 * m * k * n,
                       [this] { Product(); }, "oneDNN"});
  }

 private:
  void Forward() {
    LinearForward({x_.data(), samples_, inputs_}, {w_.data(), inputs_, outputs_}, bias_, Activation::kRelu,
                  {y_.data(), samples_, outputs_}, threads_);
  }
  void Backward() {
    const Matrix dz{dz_.data(), samples_, outputs_};
    ActivationAndBiasBackward(Activation::kRelu, {y_.data(), samples_, outputs_}, {dy_.data(), samples_, outputs_},
                              {dz_.data(), samples_, outputs_}, false, db_);
    LinearBackwardWeights({x_.data(), samples_, inputs_}, dz, false, {dw_.data(), inputs_, outputs_}, threads_);
    LinearBackwardInput(dz, {w_.data(), inputs_, outputs_}, {dx_.data(), samples_, inputs_}, threads_);
  }
  void Product() {
    LinearBackwardInput({dz_.data(), samples_, outputs_}, {w_.data(), inputs_, outputs_},
                        {dx_.data(), samples_, inputs_}, threads_);
  }

  const int64_t samples_, inputs_, outputs_;
  ComputeThreads threads_{1};
  std::vector<float> x_, w_, bias_, y_, dy_, dz_, dx_, dw_, db_;
};

class Embedding {
 public:
  explicit Embedding(const KernelOptions& options) : samples_(options.batch), dim_(options.dim) {
    base::Rng rng(6);
    // As in a batch: half of the ids are of rows that occur before.
    const auto rows = static_cast<uint64_t>(samples_ * kFields / 2);
    for (int64_t i = 0; i < samples_ * kFields; ++i) ids_.push_back(static_cast<int32_t>(rng.Below(rows)));
    rows_ = Random(static_cast<int64_t>(rows) * dim_, 7);
    gradients_.resize(rows_.size());
    numerics_ = Random(samples_ * kNumerics, 8);
    y_ = Random(samples_ * (kFields * dim_ + kNumerics), 9);
  }

  void Add(std::vector<Kernel>& kernels) {
    const double touched = static_cast<double>(samples_) * kFields * static_cast<double>(dim_);
    const double ids = 4.0 * static_cast<double>(samples_) * kFields, table = static_cast<double>(rows_.size());
    const double numerics = static_cast<double>(samples_) * kNumerics;
    const double pooled = static_cast<double>(samples_ * dim_);
    const std::string shape = fmt::format("{} x {} fields x {}", samples_, kFields, dim_);
    for (const bool sums : {false, true}) {
      const double out = sums ? pooled : touched;
      const std::string how = sums ? "gather + sum of fields" : "gather of fields";
      kernels.push_back({fmt::format("{} + numbers, forward, {}", how, shape),
                         ids + kFloat * (table + out + 2 * numerics), sums ? touched : 0,
                         [this, sums] { Forward(sums); }, "all fields in one pass"});
      kernels.push_back({fmt::format("{}, gradient, {}", how, shape), ids + kFloat * (2 * table + out), touched,
                         [this, sums] { Backward(sums); }, "all fields in one pass"});
    }
  }

 private:
  IdColumns Ids() const { return {ids_, kFields, 0, kFields}; }
  int64_t Width(bool sums) const { return (sums ? 1 : kFields) * dim_ + kNumerics; }
  void Forward(bool sums) {
    EmbeddingForward(Ids(), numerics_, {rows_.data(), static_cast<int64_t>(rows_.size()) / dim_, dim_}, sums,
                     {y_.data(), samples_, Width(sums)});
  }
  void Backward(bool sums) {
    EmbeddingBackward(Ids(), sums, {y_.data(), samples_, Width(sums)},
                      {gradients_.data(), static_cast<int64_t>(gradients_.size()) / dim_, dim_});
  }

  const int64_t samples_, dim_;
  std::vector<int32_t> ids_;
  std::vector<float> rows_, gradients_, numerics_, y_;
};

class Update {
 public:
  Update(const KernelOptions& options, const std::string& name, double floats, double flops)
      : name_(name), floats_(floats), flops_(flops), optimizer_(MakeOptimizer(name, 0.001).value()) {
    const int64_t inputs = kFields * options.dim + kNumerics, width = options.width;
    std::vector<ParameterSpec> specs;
    int operation = 0;
    const std::pair<int64_t, int64_t> shapes[] = {{inputs, width}, {width, width}, {width, width}, {width, 1}};
    for (const auto& [rows, columns] : shapes) {
      specs.push_back({.operation = ++operation,
                       .name = "weight",
                       .rows = rows,
                       .columns = columns,
                       .initializer = Initializer::kXavierUniform});
      specs.push_back({.operation = operation, .name = "bias", .rows = 1, .columns = columns});
    }
    store_ = std::make_unique<DenseStore>(specs, optimizer_, 1);
    std::ranges::fill(store_->Gradients(), 0.01F);
  }
  void Add(std::vector<Kernel>& kernels) {
    const auto weights = static_cast<double>(store_->size());
    kernels.push_back({fmt::format("{}, {} parameters of 8 arrays", name_, store_->size()), kFloat * floats_ * weights,
                       flops_ * weights, [this] { store_->ApplyUpdate(optimizer_.AtStep(++step_)); },
                       "the whole rule in one pass"});
  }

 private:
  const std::string name_;
  const double floats_, flops_;  // of a weight
  const Optimizer optimizer_;
  std::unique_ptr<DenseStore> store_;
  int64_t step_ = 0;
};

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void RunKernelsBench(const KernelOptions& options) {
  Layer first(options, kFields * options.dim + kNumerics), hidden(options, options.width);
  Embedding embedding(options);
  Update adam(options, "adam", 7, 12), adagrad(options, "adagrad", 5, 7), sgd(options, "sgd", 3, 2);
  std::vector<Kernel> kernels;
  first.Add(kernels);
  hidden.Add(kernels);
  embedding.Add(kernels);
  for (Update* update : {&adam, &adagrad, &sgd}) update->Add(kernels);

  std::vector<double> peaks;
  std::map<double, std::vector<double>> bandwidths;  // by bytes
  for (int round = 0; round < options.rounds; ++round) {
    peaks.push_back(MostFlops());
    for (Kernel& kernel : kernels) {
      bandwidths[kernel.bytes].push_back(MostBytes(static_cast<size_t>(kernel.bytes)));
      kernel.run();
      const double start = base::ProcessorSeconds();
      double spent = 0;
      int runs = 0;
      for (; spent < options.seconds; ++runs) {
        kernel.run();
        spent = base::ProcessorSeconds() - start;
      }
      kernel.seconds.push_back(spent / runs);
    }
  }
  const double peak = MedianOf(peaks);
  fmt::print("one thread: {:.1f} GFLOP/s at most; bandwidth for as many bytes as each kernel has; medians of {}\n",
             peak / 1e9, options.rounds);
  fmt::print("{:<66}{:>8}{:>8}{:>8}{:>9}{:>8}{:>8}{:>7}  {}\n", "kernel", "MB", "MFLOP", "us", "GFLOP/s", "GB/s",
             "of GB/s", "roof", "fused");
  for (const Kernel& kernel : kernels) {
    const double seconds = MedianOf(kernel.seconds), bandwidth = MedianOf(bandwidths[kernel.bytes]);
    const double least = std::max(kernel.flops / peak, kernel.bytes / bandwidth);
    fmt::print("{:<66}{:>8.2f}{:>8.2f}{:>8.1f}{:>9.1f}{:>8.1f}{:>8.1f}{:>6.0f}%  {}\n", kernel.name, kernel.bytes / 1e6,
               kernel.flops / 1e6, seconds * 1e6, kernel.flops / seconds / 1e9, kernel.bytes / seconds / 1e9,
               bandwidth / 1e9, 100 * least / seconds, kernel.fused);
  }
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::KernelOptions options;
  CLI::App app("Measures kernels of a training step against the roof of one core.");
  app.add_option("--batch", options.batch, "samples")->check(CLI::Range(1, 1 << 16));
  app.add_option("--dim", options.dim, "numbers of an embedding")->check(CLI::Range(1, 4096));
  app.add_option("--width", options.width, "outputs of a layer")->check(CLI::Range(1, 1 << 14));
  app.add_option("--rounds", options.rounds, "measurements of each, which take turns")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "processor time of one measurement");
  CLI11_PARSE(app, argc, argv);
  medley::worker::RunKernelsBench(options);
  return 0;
}
