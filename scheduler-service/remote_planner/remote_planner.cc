#include "scheduler-service/remote_planner/remote_planner.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <atomic>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/model/convert.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/planner/v1/planner.pb.h"
#include "scheduler-service/remote_planner/candidates.h"

namespace medley::sched {
namespace {

constexpr double kRemoteShare = 0.7;  // of the time budget; the rest is kept for the own planner
constexpr double kSearchShare = 0.9;  // of a call's time, so that its last candidate arrives in time
constexpr int kMaxMessageBytes = 1 << 20;
constexpr int64_t kMaxPemBytes = 1 << 20;
constexpr char kMethod[] = "/medley.planner.v1.PlannerService/Solve";

// What one call has brought.
struct CallResult {
  std::optional<Provisioned> best;
  std::string failure;  // a sentence without its end, if the call did not end in order or brought nothing
};

absl::StatusOr<rpc::ChannelOptions> ChannelOptionsOf(const RemotePlannerConfig& config) {
  rpc::ChannelOptions options;
  options.max_message_bytes = kMaxMessageBytes;
  // Calls have deadlines, and servers of other languages end connections that send many pings.
  options.keepalive_interval = base::milliseconds(0);
  if (!config.tls) return options;
  options.tls = rpc::ClientTls{.server_name = config.tls->server_name};
  if (!config.tls->ca.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(options.tls->root_certificates, base::ReadFile(config.tls->ca, kMaxPemBytes));
  }
  return options;
}

grpc::ByteBuffer Question(const Problem& problem, const std::string& planner, uint64_t seed, double seconds) {
  planner::v1::SolveRequest question;
  model::ToProto(problem.request(), *question.mutable_request());
  question.mutable_request()->mutable_planner()->set_name(planner);
  question.set_seed(seed);
  question.set_budget_seconds(seconds);
  const grpc::Slice bytes(question.SerializeAsString());
  return {&bytes, 1};
}

class RemotePlanner final : public Planner {
 public:
  RemotePlanner(RemotePlannerConfig config, const rpc::ChannelOptions& options, const Planner& own)
      : config_(std::move(config)), own_(own), channel_(rpc::MakeChannel(config_.address, options)) {}

  std::string_view name() const override { return config_.name; }
  std::string_view description() const override { return config_.description; }
  bool deterministic() const override { return false; }  // another process may answer anything

  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    CallResult remote = Ask(problem, seed, budget.Share(kRemoteShare));
    auto own = own_.Solve(problem, seed, budget);
    const bool own_plan = own.ok() && own->best;
    const double limit = own_plan ? own->best->score.cost : kInfinity;
    const double margin = limit * (remote.failure.empty() ? kSameCost : -kSameCost);
    const bool use_remote = remote.best && (!own_plan || remote.best->score.cost <= limit + margin);
    std::string note;
    if (!remote.failure.empty()) {
      note = use_remote ? remote.failure + "; its best candidate is used, because no better plan is known"
                        : remote.failure + "; the answer is the service's own";
    } else if (!use_remote) {
      note = fmt::format(
          "the best plan of planner {} costs {:.6g} USD, and the service's own costs {:.6g} USD; the "
          "answer is the service's own",
          name(), remote.best->score.cost, limit);
    }
    if (!use_remote && !own.ok()) return own;
    Solution solution = own.ok() ? *std::move(own) : Solution{};
    if (use_remote) {
      solution.best = std::move(remote.best);
      solution.planner = {};
      solution.complete = true;
    } else if (solution.planner.empty()) {
      solution.planner = own_.name();
    }
    if (!note.empty()) {
      log::Warn("planner failed or was not the best", {{"planner", config_.name}, {"note", note}});
      solution.notes.push_back(std::move(note));
    }
    return solution;
  }

 private:
  // A place among the calls at the same time.
  class Place {
   public:
    explicit Place(std::atomic<int>& calls) : calls_(calls), free_(++calls <= kMaxCallsOfRemotePlanner) {}
    ~Place() { --calls_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    bool ok() const { return free_; }

   private:
    std::atomic<int>& calls_;
    const bool free_;
  };

  std::string Named() const { return fmt::format("planner {} at {}", config_.name, config_.address); }

  absl::StatusOr<std::string> Token() const {
    if (config_.token_file.empty()) return std::string();
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(config_.token_file, kMaxPemBytes));
    return std::string(base::Trim(text));
  }

  // Ends when `budget` does.
  CallResult Ask(const Problem& problem, uint64_t seed, const Budget& budget) const {
    const Place place(calls_);
    if (!place.ok()) {
      return {std::nullopt, fmt::format("{} computes {} plans already", Named(), kMaxCallsOfRemotePlanner)};
    }
    const double seconds = std::min(budget.RemainingSeconds(), config_.timeout_seconds);
    if (seconds <= 0 || budget.Spent()) return {std::nullopt, fmt::format("no time was left for {}", Named())};
    const auto token = Token();
    if (!token.ok()) {
      return {std::nullopt, fmt::format("{} was not asked: {}", Named(), base::Message(token.status()))};
    }
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = *token, .timeout = base::FromSeconds(seconds)});
    const rpc::StopCancelsCall guard(context, budget.stop());
    // Bytes, not messages: gRPC would end the call without a word at the first message that it cannot parse.
    const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
            channel_.get(), method_, &context, Question(problem, config_.planner, seed, seconds * kSearchShare)));
    Candidates candidates(problem);
    bool done = false, ended_itself = false;
    while (!done && !candidates.Enough() && !budget.Spent()) {
      grpc::ByteBuffer buffer;
      ended_itself = !reader->Read(&buffer);
      grpc::Slice bytes;
      if (ended_itself || !buffer.DumpToSingleSlice(&bytes).ok()) break;
      done = candidates.Take({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
    }
    if (!ended_itself) context.TryCancel();
    const grpc::Status ended = reader->Finish();
    log::Debug("planner asked", {{"planner", config_.name},
                                 {"candidates", std::to_string(candidates.taken())},
                                 {"claimed_lower_bound", std::to_string(candidates.claimed_lower_bound())}});
    return {candidates.best(), Failure(candidates, done, ended, seconds, budget.stop().stop_requested())};
  }

  std::string Failure(const Candidates& candidates, bool done, const grpc::Status& ended, double seconds,
                      bool cancelled) const {
    if (candidates.refused() > 0 && !candidates.best()) {
      return fmt::format("{} sent {} candidates, of which {} cannot be used (the first: {})", Named(),
                         candidates.taken(), candidates.refused(), candidates.first_refusal());
    }
    if (candidates.Enough()) {
      return fmt::format("the call of {} was ended after {} candidates, of which {} cannot be used", Named(),
                         candidates.taken(), candidates.refused());
    }
    if (cancelled) return fmt::format("the call of {} was cancelled by the caller", Named());
    if (!done && !ended.ok()) {
      const bool late = ended.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                        ended.error_code() == grpc::StatusCode::CANCELLED;
      if (late) {
        return fmt::format("{} did not finish within {:.3g} s, after {} candidates", Named(), seconds,
                           candidates.taken());
      }
      return fmt::format("{} failed after {} candidates ({})", Named(), candidates.taken(),
                         Printable(base::ToString(rpc::FromGrpc(ended))));
    }
    if (candidates.best()) return "";
    if (candidates.infeasible() > 0) {
      return fmt::format("{} sent {} candidates, none of which meets the constraints", Named(), candidates.taken());
    }
    return fmt::format("{} sent no candidate", Named());
  }

  const RemotePlannerConfig config_;
  const Planner& own_;
  const std::shared_ptr<grpc::Channel> channel_;
  const grpc::internal::RpcMethod method_{kMethod, grpc::internal::RpcMethod::SERVER_STREAMING};
  mutable std::atomic<int> calls_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Planner>> MakeRemotePlanner(const RemotePlannerConfig& config, const Planner& own) {
  MEDLEY_ASSIGN_OR_RETURN(const rpc::ChannelOptions options, ChannelOptionsOf(config));
  return std::make_unique<RemotePlanner>(config, options, own);
}

absl::Status AddRemotePlanners(const std::filesystem::path& file, bool insecure, Registry& registry) {
  std::vector<std::string> taken;
  for (const auto& planner : registry.planners()) taken.emplace_back(planner->name());
  MEDLEY_ASSIGN_OR_RETURN(const auto configs, LoadRemotePlanners(file, taken, insecure));
  const Planner* const own = registry.Find("auto");
  MEDLEY_CHECK(own != nullptr, "the registry has no planner auto");
  for (const RemotePlannerConfig& config : configs) {
    auto planner = MakeRemotePlanner(config, *own);
    if (!planner.ok()) return base::Annotate(planner.status(), "planner " + config.name);
    registry.Add(*std::move(planner));
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
