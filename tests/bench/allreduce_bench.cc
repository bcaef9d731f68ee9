// Measures an allreduce among processes of this machine, over loopback, in plain text or with TLS.
//
//   allreduce_bench [--ranks 2] [--bytes 4096] [--algorithm ring] [--profile FILE] [--tls] [--shared-memory]
//     [--seconds 1]
//   allreduce_bench --measure [--tls]            # prints the profile for --profile, as a profiler measures it
//
// AUTO is what a planner chooses by the profile; without one, what it chooses without measurements. Prints one line of
// JSON: the median time of a call, and the processor time of all ranks per call, which depends less on how busy the
// machine is.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"
#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/convert.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "worker/app/runtime_probe.h"
#include "worker/collective/group.h"
#include "worker/profiler/allreduce_table.h"

namespace medley::bench {
namespace {

using model::AllreduceAlgorithm;
namespace fs = std::filesystem;

struct Settings {
  int ranks = 2;
  size_t bytes = 4096;
  std::string name = "ring";
  std::string resolved;  // what AUTO means; else `name`
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kRing;
  bool tls = false;
  bool share_memory = false;
  double seconds = 1;
  std::string profile;  // file
};

constexpr char kPool[] = "bench";

// One file a key, so that processes find one another.
class FolderStore final : public worker::KeyValueStore {
 public:
  explicit FolderStore(fs::path folder) : folder_(std::move(folder)) {}
  absl::Status Put(const std::string& key, const std::string& value) override {
    return base::WriteFileAtomic(Path(key), value);
  }
  absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys, base::nanoseconds timeout,
                                               std::stop_token stop) override {
    base::SystemClock clock;
    std::vector<std::string> values;
    for (const base::SteadyTime end = clock.Steady() + timeout; values.size() < keys.size();) {
      auto value = base::ReadFile(Path(keys[values.size()]));
      if (value.ok()) {
        values.push_back(*std::move(value));
      } else if (clock.Steady() > end || !clock.SleepFor(base::milliseconds(1), stop)) {
        return base::DeadlineExceeded("{} was not written", keys[values.size()]);
      }
    }
    return values;
  }

 private:
  fs::path Path(std::string key) const {
    std::replace(key.begin(), key.end(), '/', '_');
    return folder_ / key;
  }
  const fs::path folder_;
};

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Calls until `calls` are made. Returns the time of each.
std::vector<double> Call(worker::Group& group, const Settings& settings, int64_t calls) {
  const base::SystemClock clock;
  std::vector<float> values(settings.bytes / sizeof(float), 1.0f);
  std::vector<double> times;
  for (int64_t i = 0; i < calls; ++i) {
    std::fill(values.begin(), values.end(), 1.0f);
    const base::SteadyTime begin = clock.Steady();
    const absl::Status status = group.AllreduceSum(values, settings.algorithm);
    MEDLEY_CHECK(status.ok() && values.back() == static_cast<float>(settings.ranks), base::ToString(status));
    times.push_back(base::ToSeconds(clock.Steady() - begin));
  }
  return times;
}

std::optional<worker::GroupTls> TlsOf(const Settings& settings, const fs::path& folder) {
  if (!settings.tls) return std::nullopt;
  return worker::GroupTls{folder / "ca.crt", folder / "identity.pem", certificates::JobName("bench")};
}

// A new folder with the certificates of a job.
fs::path WriteCertificates() {
  const base::SystemClock clock;
  const auto authority = certificates::MakeJobAuthority("bench", clock.Now()).value();
  const auto own = certificates::IssueForJob(authority, "bench", clock.Now(), std::chrono::hours(1)).value();
  const fs::path folder = base::MakeTempDir("medley-allreduce").value();
  MEDLEY_CHECK(base::WriteFileAtomic(folder / "ca.crt", authority.certificate).ok() &&
                   base::WriteFileAtomic(folder / "identity.pem", own.certificate + own.key).ok(),
               "write certificates");
  return folder;
}

// Rank 0 says how many calls fill the time, and writes the result to `folder`/result.
void RunRank(const Settings& settings, const fs::path& folder, int rank) {
  FolderStore store(folder);
  worker::GroupOptions options{.name = "bench", .rank = rank, .address = "127.0.0.1"};
  options.share_memory = settings.share_memory;
  for (int i = 0; i < settings.ranks; ++i) options.members.push_back(fmt::format("rank {}", i));
  options.tls = TlsOf(settings, folder);
  const auto group = worker::Group::Connect(options, store, {});
  MEDLEY_CHECK(group.ok(), base::ToString(group.status()));
  const base::SystemClock clock;
  const base::SteadyTime begin = clock.Steady();
  int64_t calls = 5;
  Call(**group, settings, calls);
  calls = std::max(int64_t{10}, static_cast<int64_t>(settings.seconds * 5 / base::ToSeconds(clock.Steady() - begin)));
  MEDLEY_CHECK((*group)->Broadcast(std::as_writable_bytes(std::span(&calls, 1)), 0).ok(), "broadcast");
  const double cpu_begin = CpuSeconds(RUSAGE_SELF);
  std::vector<double> times = Call(**group, settings, calls);
  MEDLEY_CHECK((*group)->Barrier().ok(), "barrier");
  double cpu = (CpuSeconds(RUSAGE_SELF) - cpu_begin) / static_cast<double>(calls);
  for (int from = 1; from < settings.ranks && rank == 0; ++from) {
    double other = 0;
    MEDLEY_CHECK((*group)->Recv(from, 1, std::as_writable_bytes(std::span(&other, 1))).ok(), "receive");
    cpu += other;
  }
  if (rank > 0) {
    MEDLEY_CHECK((*group)->Send(0, 1, std::as_bytes(std::span(&cpu, 1))).ok() && (*group)->Flush().ok(), "send");
    (void)(*group)->Barrier();
    return;
  }
  (void)(*group)->Barrier();
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size()) / 2, times.end());
  const double median = times[times.size() / 2];
  fmt::print(
      R"({{"ranks": {}, "bytes": {}, "algorithm": "{}", "resolved": "{}", "tls": {}, "calls": {}, "us": {:.1f}, "cpu_us": {:.1f}, )"
      R"("gb_per_s": {:.3f}}})"
      "\n",
      settings.ranks, settings.bytes, settings.name, settings.resolved, settings.tls, calls, median * 1e6, cpu * 1e6,
      static_cast<double>(settings.bytes) / median / 1e9);
}

int Run(const Settings& settings) {
  signal(SIGPIPE, SIG_IGN);
  const fs::path folder = WriteCertificates();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() == 0) {
      RunRank(settings, folder, rank);
      std::fflush(stdout);
      _exit(0);
    }
  }
  int failed = 0;
  for (const pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  base::RemoveTempDir(folder);
  return failed;
}

// Prints a profile without layers.
int Measure(const Settings& settings) {
  base::SystemClock clock;
  const fs::path folder = WriteCertificates();
  worker::RuntimeProbeOptions options;
  options.tls = TlsOf(settings, folder);
  const auto probe = worker::RuntimeProbe::Create(options, clock);
  MEDLEY_CHECK(probe.ok(), base::ToString(probe.status()));
  auto measured = worker::MeasureAllreduces(**probe, clock, kPool, 3, {});
  MEDLEY_CHECK(measured.ok(), base::ToString(measured.status()));
  model::Profile profile;
  profile.allreduces = *std::move(measured);
  profile::v1::Profile proto;
  model::ToProto(profile, proto);
  fmt::print("{}\n", model::ToJson(proto));
  base::RemoveTempDir(folder);
  return 0;
}

// As the program of a plan resolves it.
AllreduceAlgorithm ResolveAuto(const Settings& settings) {
  profile::v1::Profile proto;
  if (!settings.profile.empty()) {
    const auto text = base::ReadFile(settings.profile);
    MEDLEY_CHECK(text.ok() && model::ParseText(*text, proto).ok(), "reading " + settings.profile);
  }
  const auto profile = model::FromProto(proto);
  MEDLEY_CHECK(profile.ok(), base::ToString(profile.status()));
  const std::string pools[] = {kPool};
  return model::ChooseAllreduce(model::MeasuredRules(settings.ranks, pools, profile->allreduces), settings.ranks,
                                static_cast<int64_t>(settings.bytes));
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  using medley::model::AllreduceAlgorithm;
  const std::map<std::string, AllreduceAlgorithm> algorithms{
      {"auto", AllreduceAlgorithm::kAuto},
      {"ring", AllreduceAlgorithm::kRing},
      {"centralized", AllreduceAlgorithm::kCentralized},
      {"recursive-doubling", AllreduceAlgorithm::kRecursiveDoubling},
      {"linear", AllreduceAlgorithm::kLinear}};
  medley::bench::Settings settings;
  CLI::App app("An allreduce among processes of this machine");
  app.add_option("--ranks", settings.ranks)->check(CLI::Range(2, 64));
  app.add_option("--bytes", settings.bytes)->check(CLI::Range(size_t{4}, size_t{1} << 30));
  app.add_option("--algorithm", settings.name)->check(CLI::IsMember(algorithms));
  app.add_option("--profile", settings.profile);
  bool measure = false;
  app.add_flag("--measure", measure);
  app.add_flag("--tls", settings.tls);
  app.add_flag("--shared-memory", settings.share_memory);
  app.add_option("--seconds", settings.seconds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  settings.algorithm = algorithms.at(settings.name);
  if (measure) return medley::bench::Measure(settings);
  if (settings.algorithm == AllreduceAlgorithm::kAuto) settings.algorithm = medley::bench::ResolveAuto(settings);
  for (const auto& [name, algorithm] : algorithms) {
    if (algorithm == settings.algorithm) settings.resolved = name;
  }
  return medley::bench::Run(settings);
}
