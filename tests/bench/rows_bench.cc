// Measures what a pull and a push of embedding rows cost: `./dev bench rows`.
//
// Each step pulls the distinct rows of a batch and pushes a gradient for each: to a RowStore in this process, and over
// gRPC to a parameter server on loopback, in plain text and with the certificates of a job. The keys are those of 26
// Criteo-like fields (Zipf), or random ones of a table whose rows all exist. Rounds take turns, and the medians count.
// A rate is distinct rows in one second of processor time, of client and server together. docs/design/runtime.md has
// figures.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "common/rpc/mutual_tls.h"
#include "common/rpc/server.h"
#include "tests/bench/criteo_shape.h"
#include "tests/bench/row_tiers_rates.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"

namespace medley::worker {
namespace {

constexpr int kTable = 0;
constexpr size_t kBatches = 16;  // of keys, drawn before the measurement
constexpr char kToken[] = "token";

struct RowsOptions {
  int64_t rows = 4'000'000;
  int columns = 16;
  size_t batch = 512;
  std::string optimizer = "adagrad";
  int rounds = 7;
  double seconds = 0.5;  // of processor time, of one measurement
};

using Batches = std::vector<std::vector<TableKeys>>;

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

ParameterSpec TableOf(const RowsOptions& options) {
  return {.operation = kTable,
          .name = "table",
          .rows = options.rows,
          .columns = options.columns,
          .sparse = true,
          .initializer = Initializer::kUniform,
          .scale = 0.1F};
}

std::vector<TableKeys> Distinct(std::vector<uint64_t> keys, int columns) {
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return {{.operation = kTable, .columns = columns, .keys = std::move(keys)}};
}

Batches MakeBatches(const RowsOptions& options, bool zipf) {
  base::Rng rng(zipf ? 1 : 2);
  const auto rows = static_cast<uint64_t>(options.rows);
  Batches batches;
  for (size_t b = 0; b < kBatches; ++b) {
    std::vector<uint64_t> keys;
    for (size_t field = 0; field < kCriteoCardinalities.size(); ++field) {
      for (size_t sample = 0; sample < options.batch; ++sample) {
        const auto rank = static_cast<uint64_t>(ZipfRank(rng.Uniform(), kCriteoCardinalities[field]));
        keys.push_back(zipf ? base::Mix64(rank ^ (uint64_t{field} << 40)) % rows : rng.Below(rows));
      }
    }
    batches.push_back(Distinct(std::move(keys), options.columns));
  }
  return batches;
}

// The rows of a store in this process, as PsClient gives those of servers.
class StoreRows final : public SparseParameters {
 public:
  explicit StoreRows(std::shared_ptr<RowStore> store) : store_(std::move(store)) {}
  absl::Status Pull(int64_t, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit&) override {
    rows.resize(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      rows[t].resize(tables[t].keys.size() * static_cast<size_t>(tables[t].columns));
      MEDLEY_RETURN_IF_ERROR(store_->Read(tables[t].operation, tables[t].keys, rows[t]));
    }
    return absl::OkStatus();
  }
  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit&) override {
    std::vector<GradientView> views;
    for (size_t t = 0; t < tables.size(); ++t) views.push_back({tables[t].operation, tables[t].keys, gradients[t]});
    return store_->Apply(step, views, samples);
  }

 private:
  const std::shared_ptr<RowStore> store_;
};

enum class Transport { kNone, kPlain, kTls, kTlsAndKept };

constexpr size_t kKept = size_t{256} << 20;  // bytes of pushes, as trainers keep them for a server that is lost

std::shared_ptr<const rpc::MutualTls> Certificates(const base::Clock& clock) {
  const auto authority = certificates::MakeJobAuthority("bench", clock.Now()).value();
  const auto own = certificates::IssueForJob(authority, "bench", clock.Now(), std::chrono::hours(1)).value();
  return rpc::MutualTls::FromTexts({authority.certificate, own.certificate, own.key}, certificates::JobName("bench"));
}

// A store, and the way to it.
class Route {
 public:
  Route(const RowsOptions& options, Transport transport) : service_(kToken, clock_) {
    const Optimizer optimizer = MakeOptimizer(options.optimizer, 0.01).value();
    store_ = std::make_shared<RowStore>(std::vector{TableOf(options)}, optimizer, 1);
    if (transport == Transport::kNone) {
      rows_ = std::make_unique<StoreRows>(store_);
      return;
    }
    auto shard = std::make_shared<ShardGeneration>(ShardGenerationOptions{.generation = 1, .on_applied = {}}, store_);
    if (!shard->Allow(std::numeric_limits<int64_t>::max()).ok()) std::abort();
    service_.Install(std::move(shard));
    PsClientOptions client{.generation = 1, .token = kToken};
    if (transport == Transport::kTlsAndKept) client.log = std::make_shared<PushLog>([](size_t) { return kKept; });
    if (transport == Transport::kTls || transport == Transport::kTlsAndKept) {
      client.tls = Certificates(clock_);
      server_ =
          rpc::Server::Start({.mutual_tls = client.tls, .trust_certificates = true}, {&service_.service()}).value();
      client.shards = {server_->address()};
    } else {  // without rpc::Server, whose front copies what is not encrypted
      int port = 0;
      grpc::ServerBuilder builder;
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
      builder.SetMaxReceiveMessageSize(64 << 20);
      builder.RegisterService(&service_.service());
      plain_ = builder.BuildAndStart();
      client.shards = {fmt::format("127.0.0.1:{}", port)};
    }
    auto connection = std::make_unique<PsClient>(client, clock_);
    if (!connection->Connect({}).ok()) std::abort();
    rows_ = std::move(connection);
  }
  ~Route() {
    rows_.reset();
    service_.Retain(0, -1);
    if (plain_ != nullptr) plain_->Shutdown();
  }

  // Creates every row of the table.
  void Fill(const RowsOptions& options) {
    constexpr uint64_t kPiece = 1 << 13;  // the store keeps what an update of so many rows replaced
    const auto rows = static_cast<uint64_t>(options.rows);
    std::vector<float> gradient(kPiece * static_cast<size_t>(options.columns), 0.01F);
    for (uint64_t first = 0; first < rows; first += kPiece) {
      std::vector<uint64_t> keys;
      for (uint64_t key = first; key < std::min(rows, first + kPiece); ++key) keys.push_back(key);
      const GradientView view{kTable, keys,
                              std::span(gradient).first(keys.size() * static_cast<size_t>(options.columns))};
      if (!store_->Apply(store_->AppliedStep() + 1, {&view, 1}, 1).ok()) std::abort();
    }
    step_ = store_->AppliedStep();
  }

  // One step with the rows of `keys`.
  absl::Status Step(const std::vector<TableKeys>& keys) {
    gradient_.resize(keys[0].keys.size() * static_cast<size_t>(keys[0].columns), 0.01F);
    MEDLEY_RETURN_IF_ERROR(rows_->Pull(step_ + 1, keys, pulled_, {}));
    const std::span<const float> view(gradient_);
    return rows_->Push(++step_, keys, {&view, 1}, 512, {});
  }

  // Million distinct rows in a second of processor time.
  double Rate(const Batches& batches, double seconds) {
    const double start = ProcessorSeconds();
    double spent = 0, rows = 0;
    do {
      for (const auto& keys : batches) {
        if (const absl::Status status = Step(keys); !status.ok()) {
          fmt::print(stderr, "step {}: {}\n", step_, std::string(status.message()));
          std::exit(1);
        }
        rows += static_cast<double>(keys[0].keys.size());
      }
      spent = ProcessorSeconds() - start;
    } while (spent < seconds);
    return rows / spent / 1e6;
  }

 private:
  base::SystemClock clock_;
  ParameterServer service_;
  std::shared_ptr<RowStore> store_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<grpc::Server> plain_;
  std::unique_ptr<SparseParameters> rows_;
  std::vector<std::vector<float>> pulled_;
  std::vector<float> gradient_;
  int64_t step_ = 0;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// The store is filled before any other exists, so what the process holds more are its rows.
double BytesPerRow(const RowsOptions& options) {
  RowsOptions adam = options;
  adam.optimizer = "adam";
  const int64_t before = ResidentBytes();
  Route route(adam, Transport::kNone);
  route.Fill(adam);
  return static_cast<double>(ResidentBytes() - before) / static_cast<double>(options.rows);
}

void RunRowsBench(const RowsOptions& options) {
  const double bytes = BytesPerRow(options);
  struct Case {
    const char* name;
    bool zipf;
    Transport transport;
    std::unique_ptr<Route> route = nullptr;
    std::vector<double> rates = {};
  };
  std::vector<Case> cases;
  cases.push_back({"Zipf, inside the process", true, Transport::kNone});
  cases.push_back({"Zipf, loopback", true, Transport::kPlain});
  cases.push_back({"Zipf, loopback with TLS", true, Transport::kTls});
  cases.push_back({"Zipf, loopback with TLS, pushes are kept", true, Transport::kTlsAndKept});
  cases.push_back({"random, inside the process", false, Transport::kNone});
  cases.push_back({"random, loopback", false, Transport::kPlain});
  const Batches batches[] = {MakeBatches(options, false), MakeBatches(options, true)};
  for (Case& one : cases) {
    one.route = std::make_unique<Route>(options, one.transport);
    if (!one.zipf) one.route->Fill(options);
    one.route->Rate(batches[one.zipf ? 1 : 0], 0);  // connects, creates the rows
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Case& one : cases) one.rates.push_back(one.route->Rate(batches[one.zipf ? 1 : 0], options.seconds));
  }
  fmt::print("{} floats a row, {}, {} rows; 26 fields x {} samples: {} distinct keys (Zipf), {} (random)\n",
             options.columns, options.optimizer, options.rows, options.batch, batches[1][0][0].keys.size(),
             batches[0][0][0].keys.size());
  fmt::print("{:<44}{:>10}{:>10}{:>10}   million distinct rows a second of processor time\n", "pull + push", "median",
             "lowest", "highest");
  for (const Case& one : cases) {
    fmt::print("{:<44}{:>10.2f}{:>10.2f}{:>10.2f}\n", one.name, Median(one.rates), std::ranges::min(one.rates),
               std::ranges::max(one.rates));
  }
  fmt::print("resident bytes of a row with the state of Adam: {:.0f}\n", bytes);
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::RowsOptions options;
  medley::worker::TierRatesOptions tiers;
  bool only_tiers = false;
  CLI::App app("Measures what a pull and a push of embedding rows cost.");
  app.add_option("--rows", options.rows, "rows of the table")->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  app.add_option("--columns", options.columns, "weights of a row")->check(CLI::Range(1, 4096));
  app.add_option("--batch", options.batch, "samples of a step")->check(CLI::Range(1, 1 << 16));
  app.add_option("--optimizer", options.optimizer, "adagrad, adam, adamw, rmsprop or sgd");
  app.add_option("--rounds", options.rounds, "measurements of each case, which take turns")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "processor time of one measurement");
  app.add_flag("--only-tiers", only_tiers, "only the table whose rows are mostly on the disk");
  app.add_option("--tier-rows", tiers.rows, "rows of that table")->check(CLI::Range(int64_t{1000}, int64_t{1} << 31));
  app.add_option("--budget", tiers.budget, "its memory, as a part of what it takes in memory")
      ->check(CLI::Range(0.01, 1.0));
  app.add_option("--tier-seconds", tiers.seconds, "about the time of one measurement of it");
  app.add_flag("--inside", tiers.inside, "of that table, only pulls and pushes inside the process");
  CLI11_PARSE(app, argc, argv);
  if (const auto made = medley::worker::MakeOptimizer(options.optimizer, 0.01); !made.ok()) {
    fmt::print(stderr, "--optimizer: {}\n", std::string(made.status().message()));
    return 2;
  }
  if (!only_tiers) medley::worker::RunRowsBench(options);
  tiers.columns = options.columns;
  tiers.batch = options.batch;
  tiers.rounds = options.rounds;
  medley::worker::PrintTierRates(tiers);
  return 0;
}
