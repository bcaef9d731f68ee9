// The allreduce study of the thesis on hierarchical clusters, section 3.1.4: four algorithms, two operators, 1 KiB to
// 64 MiB, one group and sub-groups, among threads that are pinned to cores and share memory: `./dev bench collectives`.
//
// It reads cores and caches from the machine and says of each figure of the thesis (3.5 to 3.11) whether this machine
// can repeat it. docs/papers/thesis.md has figures.
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/algorithms.h"

namespace medley::worker {
namespace {

using model::AllreduceAlgorithm;
using enum model::AllreduceAlgorithm;

constexpr std::array kAlgorithms = {kCentralized, kRing, kRecursiveDoubling, kLinear};
const char* NameOf(AllreduceAlgorithm algorithm) {
  switch (algorithm) {
    case kCentralized:
      return "centralized";
    case kRecursiveDoubling:
      return "doubling";
    case kLinear:
      return "linear";
    default:
      return "ring";
  }
}

// A message in shared memory: the sender shows its bytes, and the receiver copies them.
class Channel {
 public:
  void Show(std::span<const std::byte> bytes) {
    bytes_ = bytes;
    shown_.store(true, std::memory_order_release);
  }
  void Take(std::span<std::byte> bytes) {
    Until(true);
    std::ranges::copy(bytes_, bytes.begin());
    shown_.store(false, std::memory_order_release);
  }
  void WaitTaken() const { Until(false); }

 private:
  // More ranks than cores must yield, or nobody gets on.
  void Until(bool shown) const {
    constexpr int kSpins = 2000;
    for (int spin = 0; shown_.load(std::memory_order_acquire) != shown; ++spin) {
      if (spin > kSpins) sched_yield();
    }
  }
  alignas(128) std::atomic<bool> shown_{false};
  std::span<const std::byte> bytes_;
};

using Channels = std::vector<std::vector<Channel>>;  // from, to

class CoreMessages final : public Messages {
 public:
  CoreMessages(int rank, Channels& channels, bool product) : rank_(rank), channels_(channels), product_(product) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(channels_.size()); }
  absl::Status Send(int to, std::span<const std::byte> bytes) override {
    Out(to).Show(bytes);
    Out(to).WaitTaken();
    return absl::OkStatus();
  }
  absl::Status Receive(int from, std::span<std::byte> bytes) override {
    In(from).Take(bytes);
    return absl::OkStatus();
  }
  absl::Status Exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    Out(to).Show(out);
    In(from).Take(in);
    Out(to).WaitTaken();
    return absl::OkStatus();
  }
  std::span<float> Scratch(size_t count) override {
    if (scratch_.size() < count) scratch_.resize(count);
    return std::span(scratch_).first(count);
  }
  void Combine(std::span<float> to, std::span<const float> values) override {
    if (product_) {
      for (size_t i = 0; i < to.size(); ++i) to[i] *= values[i];
    } else {
      AddTo(to, values);
    }
  }

 private:
  Channel& Out(int to) { return channels_[static_cast<size_t>(rank_)][static_cast<size_t>(to)]; }
  Channel& In(int from) { return channels_[static_cast<size_t>(from)][static_cast<size_t>(rank_)]; }

  const int rank_;
  Channels& channels_;
  const bool product_;
  std::vector<float> scratch_;
};

std::vector<int> Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(static_cast<size_t>(c), &set)) cores.push_back(c);
  }
  return cores;
}

struct Case {
  int ranks = 2;
  size_t bytes = 1024;
  AllreduceAlgorithm algorithm = kRing;
  bool product = false;
  bool divided = false;  // in two sub-groups
};

std::vector<model::ReduceLevel> LevelsOf(const Case& one) {
  std::vector<int> all, first, second;
  for (int r = 0; r < one.ranks; ++r) {
    all.push_back(r);
    (r < one.ranks / 2 ? first : second).push_back(r);
  }
  if (!one.divided) return {{{all}, one.algorithm}};
  return {{{first, second}, one.algorithm}, {{{first.front(), second.front()}}, one.algorithm}};
}

// Seconds of one allreduce: the mean of as many as take `seconds`, at least 3. The results are checked.
double Measure(const Case& one, double seconds, const std::vector<int>& cores) {
  Channels channels(static_cast<size_t>(one.ranks));
  for (auto& row : channels) row = std::vector<Channel>(static_cast<size_t>(one.ranks));
  const std::vector<model::ReduceLevel> levels = LevelsOf(one);
  const float expected = one.product ? 1.0F : static_cast<float>(one.ranks);
  std::atomic<int> runs{0}, wrong{0};
  std::atomic<bool> again{true};
  double took = 0;
  const auto rank = [&](int r) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cores[static_cast<size_t>(r) % cores.size()]), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    CoreMessages messages(r, channels, one.product);
    std::vector<float> values(one.bytes / sizeof(float), 1.0F);
    const auto once = [&] {
      MEDLEY_CHECK(SumOverLevels(messages, values, levels, 0).ok(), "the study's messages do not fail");
    };
    once();
    for (const float value : {values.front(), values.back()}) wrong += value == expected ? 0 : 1;
    MEDLEY_CHECK(BarrierOver(messages).ok(), "the study's messages do not fail");
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 1; again.load(); ++run) {
      once();
      if (r == 0) {
        const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
        took = since.count();
        runs = run;
        if (run >= 3 && took >= seconds) again = false;
      }
      MEDLEY_CHECK(BarrierOver(messages).ok(), "the study's messages do not fail");
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < one.ranks; ++r) threads.emplace_back(rank, r);
  }
  if (wrong > 0) {
    fmt::print(stderr, "collectives_bench: {} of {} bytes among {} gave wrong values\n", NameOf(one.algorithm),
               one.bytes, one.ranks);
    std::exit(1);
  }
  return took / runs;
}

std::string ReadLine(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// The caches of a core, and which cores share its last one.
struct Machine {
  std::vector<std::string> caches;
  std::set<std::string> last_caches;  // lists of cores that share one
};
Machine ReadMachine(const std::vector<int>& cores) {
  Machine machine;
  for (const int core : cores) {
    const std::filesystem::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache", core);
    std::string last;
    for (int i = 0; std::filesystem::exists(folder / fmt::format("index{}", i)); ++i) {
      const std::filesystem::path index = folder / fmt::format("index{}", i);
      const std::string type = ReadLine(index / "type");
      last = ReadLine(index / "shared_cpu_list");
      if (core != cores.front() || type == "Instruction") continue;
      machine.caches.push_back(
          fmt::format("L{} {} shared by cores {}", ReadLine(index / "level"), ReadLine(index / "size"), last));
    }
    if (!last.empty()) machine.last_caches.insert(last);
  }
  return machine;
}

std::string SizeText(size_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

int Main(int argc, char** argv) {
  CLI::App app{"Allreduce on one machine, by algorithm, operator, size and sub-groups"};
  double seconds = 0.03;
  int rounds = 5;
  size_t most = 64;
  app.add_option("--seconds", seconds, "of one measurement")->capture_default_str();
  app.add_option("--rounds", rounds, "the median of so many counts; cases take turns")->capture_default_str();
  app.add_option("--most", most, "largest size in MiB")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::vector<int> cores = Cores();
  const Machine machine = ReadMachine(cores);
  fmt::print("{} cores; {} last-level caches\n", cores.size(), machine.last_caches.size());
  for (const std::string& cache : machine.caches) fmt::print("  {}\n", cache);
  fmt::print("figure 3.5, 3.6: the thesis has 6 and 10 cores; {}\n",
             cores.size() >= 10  ? "this machine has both"
             : cores.size() >= 6 ? "this machine has 6"
                                 : fmt::format("repeated with {} cores, and with more ranks than cores", cores.size()));
  const bool apart = machine.last_caches.size() > 1 && cores.size() >= 6;
  fmt::print("figures 3.7, 3.8: three cores that share the last cache, and three that do not: {}\n",
             apart ? "possible here" : "not possible here, all cores share one");
  fmt::print("figures 3.9 to 3.11: from the tables below\n\n");

  std::vector<int> counts = {2, 4};
  for (const int usual : {6, 10}) {
    if (static_cast<int>(cores.size()) >= usual) counts.push_back(usual);
  }
  for (const int ranks : counts) {
    fmt::print(
        "{} ranks{}: microseconds (median of {}); PROD over SUM for the ring; two sub-groups over one group, ring\n",
        ranks, ranks > static_cast<int>(cores.size()) ? fmt::format(" ON {} CORES", cores.size()) : "", rounds);
    fmt::print("{:>9} {:>12} {:>12} {:>12} {:>12} {:>14} {:>10} {:>11}\n", "size", "centralized", "ring", "doubling",
               "linear", "central/ring", "PROD/SUM", "sub-groups");
    for (size_t bytes = 1024; bytes <= most << 20; bytes *= 4) {
      std::map<int, std::vector<double>> found;
      for (int round = 0; round < rounds; ++round) {
        int number = 0;
        for (const auto algorithm : kAlgorithms) {
          found[number++].push_back(Measure({ranks, bytes, algorithm, false, false}, seconds, cores));
        }
        found[number++].push_back(Measure({ranks, bytes, kRing, true, false}, seconds, cores));
        if (ranks >= 4) found[number].push_back(Measure({ranks, bytes, kRing, false, true}, seconds, cores));
      }
      const auto median = [&](int number) {
        std::vector<double>& values = found[number];
        std::ranges::sort(values);
        return values[values.size() / 2];
      };
      fmt::print("{:>9} {:>12.2f} {:>12.2f} {:>12.2f} {:>12.2f} {:>14.2f} {:>10.2f} {:>11}\n", SizeText(bytes),
                 1e6 * median(0), 1e6 * median(1), 1e6 * median(2), 1e6 * median(3), median(0) / median(1),
                 median(4) / median(1), ranks >= 4 ? fmt::format("{:.2f}", median(5) / median(1)) : "-");
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) { return medley::worker::Main(argc, argv); }
