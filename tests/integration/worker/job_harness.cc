#include "tests/integration/worker/job_harness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "common/base/file.h"
#include "common/base/host_port.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/temp_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/mutual_tls.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;
namespace {

constexpr int kPort = 7070;
constexpr size_t kLogTail = 6000;

std::string UriOf(const std::string& place) {
  return place.find("://") == std::string::npos ? "file://" + place : place;
}

std::string SpecJson(const JobOptions& o) {
  if (!o.spec_json.empty()) return o.spec_json;
  const std::string test =
      o.test.empty() ? "" : fmt::format(R"(, "test": {{"uri": "{}", "format": "csv"}})", UriOf(o.test));
  const std::string schedule = o.schedule_json.empty() ? "" : ", \"schedule\": " + o.schedule_json;
  const std::string named =
      fmt::format(R"("name": "{}", "parameters": {{"embeddingDim": {}, "embeddingRows": {}, "hidden": [{}]}})", o.model,
                  o.embedding_dim, o.embedding_rows, fmt::join(o.hidden, ", "));
  const std::string exported = fmt::format(
      R"("exported": {{"uri": "file://{}"}}, "parameters": {{"embeddingRows": {}}})", o.archive, o.embedding_rows);
  return fmt::format(
      R"({{"model": {{{}{}}},
 "data": {{"train": {{"uri": "{}", "format": "csv"}}{}{}, "maxBadRows": {},
   "schema": {}}},
 "training": {{"epochs": {}, "batchSize": {}, "microBatches": 4, "optimizer": {{"name": "{}", "learningRate": {}{}}},
               "seed": 1{}}},
 "checkpoint": {{"interval": "{}", "keep": {}}}{}}})",
      !o.archive.empty()      ? exported
      : o.layers_json.empty() ? named
                              : "\"layers\": " + o.layers_json,
      o.model_json, UriOf(o.train), test, o.data_json, o.max_bad_rows, o.schema, o.epochs, o.batch_size, o.optimizer,
      o.learning_rate, schedule, o.training_json, o.checkpoint_interval, o.keep, o.spec_fields_json);
}

}  // namespace

bool IsOver(const pb::Observation& seen) {
  return seen.phase() == pb::JOB_PHASE_COMPLETE || seen.phase() == pb::JOB_PHASE_FAILED;
}

struct JobHarness::Process {
  pid_t pid = 0;
  bool running = false;
  int status = 0;  // from waitpid, once the process has ended
  bool restart = true;
  int term = 0;  // of a coordinator
};

struct JobHarness::Calls {
  std::unique_ptr<pb::CoordinatorService::Stub> stub;
};

JobHarness::JobHarness(const JobOptions& options)
    : options_(options),
      operations_(options.operations > 0 ? options.operations : static_cast<int>(options.hidden.size()) + 3),
      folder_(base::MakeTempDir("medley-job").value()) {
  generation_ = options_.plans_before;
  std::filesystem::create_directories(checkpoints());
  std::ofstream(folder_ / "spec.json") << SpecJson(options_);
  WriteCredentials();
}

// As the operator and the kubelet do. The harness calls with a certificate that no file has.
void JobHarness::WriteCredentials() {
  const std::filesystem::path credentials = folder_ / "credentials";
  std::filesystem::create_directories(credentials);
  std::ofstream(credentials / "token") << kToken;
  if (!options_.tls) return;
  const base::SystemClock clock;
  authority_ = certificates::MakeJobAuthority(kUid, clock.Now()).value();
  std::ofstream(credentials / "ca.crt") << authority_.certificate;
  std::ofstream(credentials / "ca.key") << authority_.key;
  const auto own = certificates::IssueForJob(authority_, kUid, clock.Now(), std::chrono::hours(24)).value();
  tls_ = rpc::MutualTls::FromTexts({authority_.certificate, own.certificate, own.key}, certificates::JobName(kUid));
}

JobHarness::~JobHarness() {
  for (auto& [name, process] : processes_) {
    if (process->running) kill(process->pid, SIGKILL);
    if (process->running) waitpid(process->pid, nullptr, 0);
  }
  base::RemoveTempDir(folder_);
}

// Each harness has its own addresses, from the process id and a counter, so that tests can run in parallel.
std::string JobHarness::AddressOf(const std::string& name) {
  if (options_.ipv6) return "::1";
  if (options_.network != nullptr) return options_.network->Address(name).value();
  const auto it = addresses_.find(name);
  if (it != addresses_.end()) return it->second;
  const int pid = getpid();
  static int harness_count = 0;
  if (addresses_.empty()) ++harness_count;
  return addresses_[name] = fmt::format("127.{}.{}.{}", 10 + (pid / 128 + 31 * harness_count) % 200, 1 + pid % 128,
                                        1 + addresses_.size());
}

std::string JobHarness::Endpoint(const std::string& name) { return base::JoinHostPort(AddressOf(name), PortOf(name)); }

int FreeIpv6Port() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof address;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0) close(fd);
  return bound ? ntohs(address.sin6_port) : 0;
}

// On ::1 the parameter servers listen on ports that the system chooses, and say so to the coordinator.
int JobHarness::PortOf(const std::string& name) {
  if (!options_.ipv6) return kPort;
  if (!name.starts_with("coordinator")) return 0;
  int& port = ipv6_ports_[name];
  if (port == 0) port = FreeIpv6Port();
  return port;
}

void JobHarness::Start(const std::string& name, const std::string& role, int term) {
  const char* bin = std::getenv("MEDLEY_BIN_DIR");
  const std::string binary = std::string(bin == nullptr ? "build/bin" : bin) + "/medley-worker";
  std::vector<std::string> env = {
      "MEDLEY_JOB_NAME=job",
      std::string("MEDLEY_JOB_UID=") + kUid,
      "MEDLEY_MEMBER=" + name,
      "MEDLEY_POOL=" + PoolOf(name),
      "MEDLEY_SPEC_FILE=" + (folder_ / "spec.json").string(),
      "MEDLEY_CREDENTIALS_DIR=" + (folder_ / "credentials").string(),
      "MEDLEY_CERTIFICATE_LIFETIME=" + options_.certificate_lifetime,
      "TMPDIR=" + folder_.string(),
      std::string("MEDLEY_SHARE_MEMORY=") + (options_.share_memory ? "1" : "0"),
      "MEDLEY_POD_IP=" + AddressOf(name),
      fmt::format("MEDLEY_LISTEN_PORT={}", PortOf(name)),
      "MEDLEY_COORDINATOR=" + base::JoinHostPort(AddressOf("coordinator"), PortOf("coordinator")),
      "MEDLEY_CHECKPOINT_DIR=" + (options_.checkpoint_uri.empty() ? checkpoints().string() : options_.checkpoint_uri),
      fmt::format("MEDLEY_COORDINATOR_TERM={}", term),
      "OMP_NUM_THREADS=1",
      "OPENBLAS_NUM_THREADS=1",
      "MEDLEY_LOG_LEVEL=debug",
      "PATH=/usr/bin:/bin"};
  if (!options_.samples_folder.empty()) env.push_back("MEDLEY_SAMPLES_DIR=" + options_.samples_folder);
  env.insert(env.end(), options_.environment.begin(), options_.environment.end());
  if (options_.memory_limit > 0) env.push_back(fmt::format("MEDLEY_MEMORY_LIMIT={}", options_.memory_limit));
  for (const char* options : {"ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(options)) env.push_back(fmt::format("{}={}", options, value));
  }
  std::vector<char*> envp;
  for (std::string& entry : env) envp.push_back(entry.data());
  envp.push_back(nullptr);
  std::string program = binary, role_flag = "--role=" + role;
  char* argv[] = {program.data(), role_flag.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string log = (folder_ / (name + ".log")).string();
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  auto process = std::make_unique<Process>();
  std::optional<localcluster::EmulatedNetwork::Inside> inside;
  if (options_.network != nullptr) inside.emplace(*options_.network, name);
  const int error = posix_spawn(&process->pid, binary.c_str(), &actions, nullptr, argv, envp.data());
  inside.reset();
  posix_spawn_file_actions_destroy(&actions);
  ASSERT_EQ(error, 0) << binary;
  process->running = true;
  process->term = term;
  if (options_.place) options_.place(PoolOf(name), process->pid);
  processes_[name] = std::move(process);
}

std::string JobHarness::PoolOf(const std::string& name) const {
  const auto found = pools_.find(name);
  return found == pools_.end() ? "cpu" : found->second;
}

absl::StatusOr<std::string> JobHarness::RunProfiler(const std::string& pool, base::seconds limit) {
  const std::string name = "profiler-" + pool;
  pools_[name] = pool;
  Start(name, "profiler");
  const int code = WaitForExit(name, limit);
  if (code != 0) return base::FailedPrecondition("the profiler of {} ended with {}: {}", pool, code, Log(name));
  return Log(name);
}

void JobHarness::Reap(Process& process) {
  if (process.running && waitpid(process.pid, &process.status, WNOHANG) == process.pid) process.running = false;
}

std::string JobHarness::CoordinatorName(int term) {
  return term <= 1 ? "coordinator" : fmt::format("coordinator-{}", term);
}

void JobHarness::StartCoordinator(int term) {
  Start(CoordinatorName(term), "coordinator", term);
  if (calls_ == nullptr || CoordinatorName(term) == leader_) Follow(term);
}

void JobHarness::Follow(int term) {
  leader_ = CoordinatorName(term);
  rpc::ChannelOptions options{.mutual_tls = tls_,
                              .connect_backoff_first = base::milliseconds(20),
                              .connect_backoff_max = base::milliseconds(100)};
  calls_ =
      std::make_unique<Calls>(Calls{pb::CoordinatorService::NewStub(rpc::MakeChannel(Endpoint(leader_), options))});
}

void JobHarness::Signal(const std::string& name, int signal) { kill(processes_.at(name)->pid, signal); }

bool JobHarness::HasConnected(const std::string& member) const {
  std::ifstream log(folder_ / (leader_ + ".log"));
  for (std::string line; std::getline(log, line);) {
    const bool connected = line.find("member connected") != std::string::npos;
    if (connected && line.find('"' + member + '"') != std::string::npos) return true;
  }
  return false;
}

void JobHarness::StartMembers(const JobShape& shape) {
  std::vector<std::string> members;
  const auto start = [&](const std::string& name, const char* role) {
    members.push_back(name);
    if (!processes_.contains(name)) Start(name, role);
  };
  for (size_t s = 0; s < shape.stages.size(); ++s) {
    for (int i = 0; i < shape.stages[s].units; ++i) start(fmt::format("t{}-{}", s, i), "trainer");
  }
  for (size_t d = 0; d < shape.devices.size(); ++d) {
    const std::string name = fmt::format("t0-{}", d);
    pools_[name] = shape.devices[d];
    start(name, "trainer");
  }
  for (int d = 0; d < shape.planned.devices_size(); ++d) {
    const std::string name = fmt::format("t0-{}", d);
    pools_[name] = shape.planned.devices(d).pool();
    start(name, "trainer");
  }
  for (int i = 0; i < shape.servers; ++i) start(fmt::format("server-{}", i), "server");
  base::SystemClock clock;
  const base::SteadyTime end = clock.Steady() + base::Patience(base::seconds(120));
  while (!std::ranges::all_of(members, [this](const std::string& member) { return HasConnected(member); })) {
    ASSERT_LT(clock.Steady(), end) << "not all members have connected" << AllLogs();
    clock.SleepFor(base::milliseconds(20), {});
  }
}

namespace {

void AddPlacements(const JobShape& shape, plan::v1::ExecutionPlan& plan) {
  for (size_t d = 0; d < shape.devices.size(); ++d) {
    plan::v1::Device& device = *plan.add_devices();
    device.set_id(fmt::format("device-{}", d));
    device.set_pool(shape.devices[d]);
  }
  for (const PlacementShape& from : shape.placements) {
    plan::v1::Placement& placement = *plan.add_placements();
    for (const auto& [first, end] : from.operations) {
      plan::v1::OperationRange& range = *placement.add_operations();
      range.set_first(first);
      range.set_end(end);
    }
    const auto replicas = from.devices.size();
    for (size_t r = 0; r < replicas; ++r) {
      plan::v1::Replica& replica = *placement.add_replicas();
      replica.set_device(fmt::format("device-{}", from.devices[r]));
      replica.set_share(from.shares.empty() ? 1.0 / static_cast<double>(replicas) : from.shares[r]);
    }
    placement.mutable_sync()->set_kind(replicas > 1 ? plan::v1::SYNC_KIND_ALLREDUCE : plan::v1::SYNC_KIND_NONE);
  }
  if (!shape.order.empty()) plan.mutable_order()->Assign(shape.order.begin(), shape.order.end());
}

}  // namespace

// How the trainers of a stage add, whose first one is device `first` of its pool.
void SetReduction(const StageShape& stage, int first, plan::v1::Sync& sync) {
  sync.set_algorithm(stage.algorithm);
  if (stage.root > 0) sync.set_root(fmt::format("{}/{}", stage.pool, first + stage.root));
  if (stage.group == 0) return;
  plan::v1::HierarchyLevel& level = *sync.add_hierarchy();
  level.set_algorithm(plan::v1::ALLREDUCE_ALGORITHM_LINEAR);
  for (int i = 0; i < stage.units; ++i) {
    plan::v1::DeviceGroup* group =
        i % stage.group == 0 ? level.add_groups() : level.mutable_groups(level.groups_size() - 1);
    group->add_devices(fmt::format("{}/{}", stage.pool, first + i));
  }
}

void JobHarness::Apply(const JobShape& shape, const std::string& reason) {
  const std::string error = Send(shape, reason);
  ASSERT_TRUE(error.empty()) << error << AllLogs();
}

bool JobHarness::TryApply(const JobShape& shape, const std::string& reason) {
  const std::string error = Send(shape, reason);
  if (error.empty()) return true;
  // A coordinator that was to take over from one whose job had just ended is started again, and reads the journal.
  base::SystemClock clock;
  const base::SteadyTime end = clock.Steady() + base::Patience(base::seconds(30));
  while (!Ended() && error.find("the job is over") == std::string::npos && clock.Steady() < end) {
    Poll();
    clock.SleepFor(base::milliseconds(20), {});
  }
  EXPECT_TRUE(Ended() || error.find("the job is over") != std::string::npos) << error << AllLogs();
  return false;
}

bool JobHarness::Ended() {
  Process& leader = *processes_.at(leader_);
  Reap(leader);
  if (leader.running || !WIFEXITED(leader.status)) return false;
  return WEXITSTATUS(leader.status) == 0 || WEXITSTATUS(leader.status) == 2;
}

std::string JobHarness::Send(const JobShape& shape, const std::string& reason) {
  pb::ApplyPlanRequest request;
  plan::v1::ExecutionPlan& plan = *request.mutable_plan();
  plan = shape.planned;
  plan.set_job_uid(kUid);
  plan.set_generation(++generation_ * 1000);  // leaves numbers for the generations of recoveries
  if (shape.planned.placements().empty()) {
    plan.mutable_schedule()->set_kind(shape.schedule);
    plan.mutable_schedule()->set_max_staleness(shape.max_staleness);
    plan.mutable_schedule()->set_bucket_bytes(shape.bucket_bytes);
    plan.mutable_schedule()->set_micro_batches(shape.micro_batches);
    plan.mutable_schedule()->set_without_undo(shape.without_undo);
    plan.mutable_schedule()->set_overlap_next_step(shape.overlap_next_step);
  }
  wanted_.clear();
  const auto add_slot = [&](const std::string& member, const std::string& pool, pb::MemberRole role, int stage,
                            int index) {
    pb::MemberSlot& slot = *request.add_slots();
    slot.set_member(member);
    slot.set_role(role);
    slot.set_pool(pool);
    slot.set_stage(stage);
    slot.set_index(index);
    pools_[member] = pool;
    wanted_[member] = role == pb::MEMBER_ROLE_SERVER ? "server" : "trainer";
  };
  std::map<std::string, int> devices;  // of the stages before, by pool
  std::set<int> with_tables;           // stages whose trainers have shards
  for (size_t s = 0; s < shape.stages.size(); ++s) {
    const StageShape& from = shape.stages[s];
    plan::v1::Stage& stage = *plan.add_stages();
    plan::v1::OperationRange& range = *stage.add_operations();
    range.set_first(from.first);
    range.set_end(from.end);
    plan::v1::Group& group = *stage.add_groups();
    group.set_pool(from.pool);
    group.set_units(from.units);
    group.set_share(1);
    if (from.tables.place() != plan::v1::TABLE_PLACE_UNSPECIFIED) *stage.mutable_tables() = from.tables;
    for (int op = from.first; op < from.end; ++op) {
      plan::v1::OperationSync& sync = *stage.add_syncs();
      sync.add_operations()->set_first(op);
      sync.mutable_operations(0)->set_end(op + 1);
      const bool sparse = options_.tables.contains(op) && (shape.servers > 0 || shape.rows_in_trainers);
      with_tables.insert(sparse ? static_cast<int>(s) : -1);
      sync.mutable_sync()->set_kind(sparse           ? plan::v1::SYNC_KIND_PARAMETER_SERVER
                                    : from.units > 1 ? plan::v1::SYNC_KIND_ALLREDUCE
                                                     : plan::v1::SYNC_KIND_NONE);
      SetReduction(from, devices[from.pool], *sync.mutable_sync());
      if (shape.anomaly.detector() != plan::v1::ANOMALY_DETECTOR_UNSPECIFIED) {
        *sync.mutable_sync()->mutable_anomaly() = shape.anomaly;
      }
      if (shape.mode == plan::v1::SYNC_MODE_FULL || from.units == 1) continue;
      sync.mutable_sync()->set_mode(shape.mode);
      sync.mutable_sync()->set_fraction(shape.fraction);
      sync.mutable_sync()->set_target_ratio(shape.target_ratio);
    }
    devices[from.pool] += from.units;
    for (int i = 0; i < from.units; ++i) {
      add_slot(fmt::format("t{}-{}", s, i), from.pool, pb::MEMBER_ROLE_TRAINER, static_cast<int>(s), i);
    }
  }
  AddPlacements(shape, plan);
  for (int d = 0; d < plan.devices_size(); ++d) {
    add_slot(fmt::format("t0-{}", d), plan.devices(d).pool(), pb::MEMBER_ROLE_TRAINER, 0, d);
    request.mutable_slots()->rbegin()->set_device(plan.devices(d).id());
  }
  if (shape.rows_in_trainers) {
    int trainers = 0;
    for (const int s : with_tables) trainers += s < 0 ? 0 : shape.stages[static_cast<size_t>(s)].units;
    plan.mutable_servers()->set_in_trainers(true);
    plan.mutable_servers()->set_units(trainers);
  }
  if (shape.servers > 0) {
    plan.mutable_servers()->set_pool("cpu");
    plan.mutable_servers()->set_units(shape.servers);
  }
  for (int i = 0; i < shape.servers; ++i) add_slot(fmt::format("server-{}", i), "cpu", pb::MEMBER_ROLE_SERVER, 0, i);
  for (const pb::MemberSlot& slot : request.slots()) (*request.mutable_usd_per_unit_hour())[slot.pool()] = 1;
  plan_ = plan;
  request.set_reason(reason);
  for (const auto& [member, role] : wanted_) {
    const auto it = processes_.find(member);
    if (it != processes_.end()) Reap(*it->second);
    if (it == processes_.end() || !it->second->running) Start(member, role);
  }
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = kToken, .timeout = base::Patience(base::seconds(60)), .wait_for_ready = true});
  pb::ApplyPlanResponse response;
  const grpc::Status status = calls_->stub->ApplyPlan(&context, request, &response);
  return status.ok() ? "" : "ApplyPlan: " + status.error_message();
}

void JobHarness::Kill(const std::string& name, bool restart) {
  const auto it = processes_.find(name);
  ASSERT_NE(it, processes_.end()) << name;
  Process& process = *it->second;
  process.restart = restart;
  if (!process.running) return;
  kill(process.pid, SIGKILL);
  waitpid(process.pid, &process.status, 0);
  process.running = false;
}

void JobHarness::Pause(const std::string& name) {
  Process& process = *processes_.at(name);
  Reap(process);
  if (process.running) kill(process.pid, SIGSTOP);
}

void JobHarness::Resume(const std::string& name) {
  const Process& process = *processes_.at(name);
  if (process.running) kill(process.pid, SIGCONT);
}

int JobHarness::Terminate(const std::string& name, base::seconds timeout) {
  processes_.at(name)->restart = false;
  Signal(name, SIGTERM);
  return WaitForExit(name, timeout);
}

int JobHarness::WaitForExit(const std::string& name, base::seconds timeout) {
  Process& process = *processes_.at(name);
  const base::SteadyTime deadline = base::SystemClock().Steady() + base::Patience(timeout);
  base::Mutex mutex;
  base::CondVar never;
  base::MutexLock lock(mutex);
  while (process.running && base::SystemClock().Steady() < deadline) {
    Reap(process);
    never.WaitFor(mutex, {}, base::milliseconds(10), [] { return false; });
  }
  return !process.running && WIFEXITED(process.status) ? WEXITSTATUS(process.status) : -1;
}

std::vector<std::string> JobHarness::Running() const {
  std::vector<std::string> names;
  for (const auto& [name, role] : wanted_) {
    const auto it = processes_.find(name);
    if (it != processes_.end() && it->second->running) names.push_back(name);
  }
  return names;
}

bool JobHarness::Poll() {
  bool good = true;
  for (auto& [name, process] : processes_) Reap(*process);
  const Process& leader = *processes_.at(leader_);
  const bool failed = !leader.running && WIFEXITED(leader.status) && WEXITSTATUS(leader.status) == 1;
  if (failed && leader.term > 0) Start(leader_, "coordinator", leader.term);
  for (const auto& [name, role] : wanted_) {
    const Process& process = *processes_.at(name);
    if (process.running) continue;
    const bool fatal = WIFEXITED(process.status) && WEXITSTATUS(process.status) == 2;
    if (fatal) good = false;
    // Also restarts a member that an earlier plan released and the current one needs.
    if (!fatal && process.restart) Start(name, role);
  }
  return good;
}

pb::Observation JobHarness::Observe() {
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = kToken, .timeout = base::seconds(2), .wait_for_ready = true});
  const auto stream = calls_->stub->WatchObservations(&context, {});
  pb::WatchObservationsResponse response;
  const bool read = stream->Read(&response);
  context.TryCancel();
  stream->Finish();
  return read ? response.observation() : pb::Observation();
}

pb::Observation JobHarness::WaitFor(const std::function<bool(const pb::Observation&)>& done, base::seconds timeout) {
  base::SystemClock clock;
  timeout = base::Patience(timeout);
  base::SteadyTime end = clock.Steady() + timeout;
  pb::Observation last;
  int64_t most_samples = 0;
  bool asked_again = false;
  while (clock.Steady() < end) {
    Poll();
    const pb::Observation now = Observe();
    if (now.phase() != pb::JOB_PHASE_UNSPECIFIED) last = now;
    if (done(last)) return last;
    if (last.samples_done() > most_samples) {
      most_samples = last.samples_done();
      end = clock.Steady() + timeout;
    }
    if (asked_again && now.phase() != pb::JOB_PHASE_UNSPECIFIED && !IsOver(now)) break;  // it had ended too early
    // A coordinator that has written its last observation ends. Where this client had just left, nobody read it:
    // another process reads in the journal that the job is over, and how.
    const Process& leader = *processes_.at(leader_);
    if (!leader.running) {
      if (asked_again || !Ended()) break;
      asked_again = true;
      Start(leader_, "coordinator", leader.term);
    }
    clock.SleepFor(base::milliseconds(20), {});
  }
  ADD_FAILURE() << "not in " << timeout.count()
                << " s without progress, or the coordinator ended; last: " << last.ShortDebugString() << AllLogs();
  return last;
}

pb::Observation JobHarness::WaitForEnd(base::seconds timeout) { return WaitFor(IsOver, timeout); }

std::string JobHarness::Log(const std::string& name) const {
  return base::ReadFile(folder_ / (name + ".log")).value_or("");
}

std::string JobHarness::AllLogs() const {
  std::string all = "\n";
  for (const auto& [name, process] : processes_) {
    const std::string log = Log(name);
    all += "==== " + name + "\n" + log.substr(log.size() - std::min(log.size(), kLogTail));
  }
  return all;
}

void CopyLines(const std::filesystem::path& from, const std::filesystem::path& to, int rows) {
  std::ifstream in(from);
  std::ofstream out(to);
  std::string line;
  for (int i = 0; i < rows && std::getline(in, line); ++i) out << line << "\n";
}

std::filesystem::path ExampleData(const std::string& name) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "examples" / "data" / name;
}

}  // namespace medley::worker
