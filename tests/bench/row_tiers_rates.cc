#include "tests/bench/row_tiers_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory_limit.h"
#include "common/base/processor_time.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "common/rpc/mutual_tls.h"
#include "common/rpc/server.h"
#include "tests/bench/criteo_shape.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"

namespace medley::worker {
namespace {

constexpr int kTierTable = 0;
constexpr char kTierToken[] = "token";

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", base::ToString(status));
  std::exit(1);
}

// A shard and a trainer that pulls one step ahead, as trainers do.
class Shard {
 public:
  Shard(const TierRatesOptions& options, bool remote, const RowTierOptions& tiers) : service_(kTierToken, clock_) {
    const ParameterSpec table{.operation = kTierTable,
                              .name = "table",
                              .rows = options.rows,
                              .columns = options.columns,
                              .sparse = true,
                              .initializer = Initializer::kUniform,
                              .scale = 0.1F};
    auto store = RowStore::Make({table}, MakeOptimizer("adagrad", 0.01).value(), 1, tiers);
    Check(store.status());
    store_ = *std::move(store);
    auto shard = std::make_shared<ShardGeneration>(ShardGenerationOptions{.generation = 1, .on_applied = {}}, store_);
    Check(shard->Allow(std::numeric_limits<int64_t>::max()));
    service_.Install(std::move(shard));
    PsClientOptions client{.generation = 1, .shards = {""}, .token = kTierToken};
    if (remote) {
      const auto authority = certificates::MakeJobAuthority("bench", clock_.Now()).value();
      const auto own = certificates::IssueForJob(authority, "bench", clock_.Now(), std::chrono::hours(1)).value();
      client.tls =
          rpc::MutualTls::FromTexts({authority.certificate, own.certificate, own.key}, certificates::JobName("bench"));
      auto server = rpc::Server::Start({.mutual_tls = client.tls, .trust_certificates = true}, {&service_.service()});
      Check(server.status());
      server_ = *std::move(server);
      client.shards = {server_->address()};
    } else {
      client.own = &service_;
      client.own_shard = 0;
    }
    client_ = std::make_unique<PsClient>(client, clock_);
    Check(client_->Connect({}));
  }
  ~Shard() {
    client_.reset();
    service_.Retain(0, -1);
  }

  RowStore& store() { return *store_; }

  // Creates every row. The most frequent last, so that they are hot where there is room.
  void Fill(const TierRatesOptions& options) {
    constexpr int64_t kPiece = 1 << 13;
    std::vector<float> gradient(kPiece * static_cast<size_t>(options.columns), 0.01F);
    for (int64_t first = 0; first < options.rows; first += kPiece) {
      std::vector<uint64_t> keys;
      for (int64_t key = first; key < std::min(options.rows, first + kPiece); ++key) {
        keys.push_back(static_cast<uint64_t>(key));
      }
      const GradientView view{kTierTable, keys,
                              std::span(gradient).first(keys.size() * static_cast<size_t>(options.columns))};
      Check(store_->Apply(store_->AppliedStep() + 1, {&view, 1}, 1));
    }
  }

  struct Rates {
    double wall = 0;       // million distinct rows a second
    double processor = 0;  // the same of processor time, which other programs change less
  };
  Rates Rate(const std::vector<std::vector<TableKeys>>& batches) {
    const base::SteadyTime start = clock_.Steady();
    const double processor = base::ProcessorSeconds();
    const int64_t step = store_->AppliedStep();
    std::counting_semaphore<> pulled(0);
    std::jthread puller([&] {  // as worker/pipeline/prefetcher.h
      std::vector<std::vector<float>> rows;
      for (size_t b = 0; b < batches.size(); ++b) {
        Check(client_->Pull(step + static_cast<int64_t>(b) + 1, batches[b], rows, {}));
        pulled.release();
      }
    });
    double rows = 0;
    for (size_t b = 0; b < batches.size(); ++b) {
      const TableKeys& keys = batches[b][0];
      gradient_.resize(keys.keys.size() * static_cast<size_t>(keys.columns), 0.01F);
      const std::span<const float> view(gradient_);
      pulled.acquire();
      Check(client_->Push(step + static_cast<int64_t>(b) + 1, batches[b], {&view, 1}, 512, {}));
      rows += static_cast<double>(keys.keys.size());
    }
    puller.join();
    return {.wall = rows / base::ToSeconds(clock_.Steady() - start) / 1e6,
            .processor = rows / (base::ProcessorSeconds() - processor) / 1e6};
  }

 private:
  base::SystemClock clock_;
  ParameterServer service_;
  std::shared_ptr<RowStore> store_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<PsClient> client_;
  std::vector<float> gradient_;
};

std::vector<std::vector<TableKeys>> ZipfBatches(const TierRatesOptions& options, size_t count, base::Rng& rng) {
  std::vector<std::vector<TableKeys>> batches;
  while (batches.size() < count) {
    std::vector<uint64_t> keys;
    for (size_t draw = 0; draw < options.batch * kCriteoCardinalities.size(); ++draw) {
      const auto rank = static_cast<uint64_t>(ZipfRank(rng.Uniform(), options.rows));
      // A fixed order of the ranks, so that frequent keys are anywhere.
      keys.push_back(base::Mix64(rank) % static_cast<uint64_t>(options.rows));
    }
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    batches.push_back({{.operation = kTierTable, .columns = options.columns, .keys = std::move(keys)}});
  }
  return batches;
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

constexpr double kMebibyte = 1 << 20;

}  // namespace

void PrintTierRates(const TierRatesOptions& options) {
  const auto folder = base::MakeTempDir("rows-bench").value();
  base::Rng warm(3);
  const auto warming = ZipfBatches(options, 200, warm);
  // Each is filled before the next exists, so what the process holds more are its rows.
  int64_t before = base::MemoryInUse();
  std::vector<std::unique_ptr<Shard>> in_memory, tiered;
  in_memory.push_back(std::make_unique<Shard>(options, /*remote=*/false, RowTierOptions{}));
  in_memory[0]->Fill(options);
  const double whole = static_cast<double>(base::MemoryInUse() - before);
  const RowTierOptions tiers{.memory_bytes = static_cast<int64_t>(whole * options.budget), .folder = folder};
  before = base::MemoryInUse();
  tiered.push_back(std::make_unique<Shard>(options, /*remote=*/false, tiers));
  tiered[0]->Fill(options);
  tiered[0]->Rate(warming);
  const double held = static_cast<double>(base::MemoryInUse() - before);
  const size_t transports = options.inside ? 1 : 2;
  for (auto* shards : {&in_memory, &tiered}) {
    if (transports == 1) break;
    shards->push_back(std::make_unique<Shard>(options, /*remote=*/true, shards == &tiered ? tiers : RowTierOptions{}));
    shards->back()->Fill(options);
  }
  fmt::print(
      "\na table of {} rows x {} (Adagrad), {:.0f} MiB in memory, of which {:.0f} MiB are the budget; {} x {} keys "
      "of Zipf(1.1), pulls one step ahead\n",
      options.rows, options.columns, whole / kMebibyte, static_cast<double>(tiers.memory_bytes) / kMebibyte,
      options.batch, kCriteoCardinalities.size());
  const char* const names[] = {"inside the process", "loopback with TLS"};
  std::vector<Shard::Rates> rates[2][2];  // by transport and place
  base::Rng rng(4);
  for (size_t transport = 0; transport < transports; ++transport) {  // brings the frequent rows into memory
    for (Shard* shard : {in_memory[transport].get(), tiered[transport].get()}) {
      base::Rng same(5);
      shard->Rate(ZipfBatches(options, 200, same));
    }
  }
  RowTierCounts start[2];
  for (size_t transport = 0; transport < transports; ++transport)
    start[transport] = *tiered[transport]->store().TierCounts();
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t transport = 0; transport < transports; ++transport) {
      // As many as take about so long on an idle machine.
      const auto count = static_cast<size_t>(std::max(1.0, options.seconds * (transport == 0 ? 400 : 150)));
      const auto batches = ZipfBatches(options, count, rng);
      rates[transport][0].push_back(in_memory[transport]->Rate(batches));
      rates[transport][1].push_back(tiered[transport]->Rate(batches));
    }
  }
  fmt::print("{:<24}{:>12}{:>12}{:>10}{:>18}{:>10}{:>14}   million distinct rows a second, medians of {}\n",
             "pull + push", "in memory", "tiers", "share", "of processor time", "hits", "read ahead", options.rounds);
  for (size_t transport = 0; transport < transports; ++transport) {
    const RowTierCounts end = *tiered[transport]->store().TierCounts();
    const double uses = static_cast<double>(end.uses - start[transport].uses);
    const double loads = static_cast<double>(end.loads - start[transport].loads);
    const double ahead = static_cast<double>(end.ahead - start[transport].ahead);
    std::vector<double> in_memory_rates, tiered_rates, shares, processor_shares;
    for (size_t r = 0; r < rates[transport][0].size(); ++r) {
      const Shard::Rates memory = rates[transport][0][r], tier = rates[transport][1][r];
      in_memory_rates.push_back(memory.wall);
      tiered_rates.push_back(tier.wall);
      shares.push_back(tier.wall / memory.wall);
      processor_shares.push_back(tier.processor / memory.processor);
    }
    fmt::print("{:<24}{:>12.2f}{:>12.2f}{:>9.0f}%{:>17.0f}%{:>9.1f}%{:>13.0f}%\n", names[transport],
               MedianOf(in_memory_rates), MedianOf(tiered_rates), 100 * MedianOf(shares),
               100 * MedianOf(processor_shares), 100 * (1 - loads / uses), 100 * ahead / std::max(1.0, loads));
  }
  const RowTierCounts counts = *tiered[0]->store().TierCounts();
  fmt::print("{} hot rows, {} cold ones; resident memory of the tiers {:.0f} MiB; {:.0f} MiB on the disk\n", counts.hot,
             counts.cold, held / kMebibyte, static_cast<double>(counts.disk_bytes) / kMebibyte);
  in_memory.clear();
  tiered.clear();
  std::filesystem::remove_all(folder);
}

}  // namespace medley::worker
