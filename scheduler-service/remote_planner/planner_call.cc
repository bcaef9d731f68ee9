#include "scheduler-service/remote_planner/planner_call.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include <utility>

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

constexpr double kSearchShare = 0.9;  // of a call's time, so that its last candidate arrives in time
constexpr int kMaxMessageBytes = 1 << 20;
constexpr int64_t kMaxPemBytes = 1 << 20;
constexpr char kMethod[] = "/medley.planner.v1.PlannerService/Solve";

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

grpc::ByteBuffer Asked(const model::PlanRequest& request, const std::string& planner, uint64_t seed, double seconds) {
  planner::v1::SolveRequest question;
  model::ToProto(request, *question.mutable_request());
  question.mutable_request()->mutable_planner()->set_name(planner);
  question.set_seed(seed);
  question.set_budget_seconds(seconds);
  const grpc::Slice bytes(question.SerializeAsString());
  return {&bytes, 1};
}

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

// Why a call brought nothing, or ended early; a sentence without its end. Empty: neither.
std::string Failure(const std::string& named, const CandidateReader& candidates, bool done, const grpc::Status& ended,
                    double seconds, bool cancelled) {
  if (candidates.refused() > 0 && !candidates.usable()) {
    return fmt::format("{} sent {} candidates, of which {} cannot be used (the first: {})", named, candidates.taken(),
                       candidates.refused(), candidates.first_refusal());
  }
  if (candidates.Enough()) {
    return fmt::format("the call of {} was ended after {} candidates, of which {} cannot be used", named,
                       candidates.taken(), candidates.refused());
  }
  if (cancelled) return fmt::format("the call of {} was cancelled by the caller", named);
  if (!done && !ended.ok()) {
    const bool late =
        ended.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED || ended.error_code() == grpc::StatusCode::CANCELLED;
    if (late) {
      return fmt::format("{} did not finish within {:.3g} s, after {} candidates", named, seconds, candidates.taken());
    }
    return fmt::format("{} failed after {} candidates ({})", named, candidates.taken(),
                       Printable(base::ToString(rpc::FromGrpc(ended))));
  }
  if (candidates.usable()) return "";
  if (candidates.infeasible() > 0) {
    return fmt::format("{} sent {} candidates, none of which meets the constraints", named, candidates.taken());
  }
  return fmt::format("{} sent no candidate", named);
}

}  // namespace

class PlannerCall::Channel {
 public:
  Channel(const std::string& address, const rpc::ChannelOptions& options)
      : channel_(rpc::MakeChannel(address, options)) {}
  // Bytes, not messages: gRPC would end the call without a word at the first message that it cannot parse.
  std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> Start(grpc::ClientContext& context,
                                                              const grpc::ByteBuffer& question) const {
    return std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>>(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel_.get(), method_, &context, question));
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const grpc::internal::RpcMethod method_{kMethod, grpc::internal::RpcMethod::SERVER_STREAMING};
};

absl::StatusOr<std::unique_ptr<PlannerCall>> PlannerCall::Make(RemotePlannerConfig config) {
  MEDLEY_ASSIGN_OR_RETURN(const rpc::ChannelOptions options, ChannelOptionsOf(config));
  auto channel = std::make_unique<Channel>(config.address, options);
  return std::unique_ptr<PlannerCall>(new PlannerCall(std::move(config), std::move(channel)));
}

PlannerCall::PlannerCall(RemotePlannerConfig config, std::unique_ptr<Channel> channel)
    : config_(std::move(config)), channel_(std::move(channel)) {}
PlannerCall::~PlannerCall() = default;

std::string PlannerCall::Named() const { return fmt::format("planner {} at {}", config_.name, config_.address); }

absl::StatusOr<std::string> PlannerCall::Token() const {
  if (config_.token_file.empty()) return std::string();
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(config_.token_file, kMaxPemBytes));
  return std::string(base::Trim(text));
}

std::string PlannerCall::Ask(const model::PlanRequest& request, uint64_t seed, double seconds,
                             const std::stop_token& stop, CandidateReader& candidates) {
  const Place place(calls_);
  if (!place.ok()) return fmt::format("{} computes {} plans already", Named(), kMaxCallsOfRemotePlanner);
  seconds = std::min(seconds, config_.timeout_seconds);
  if (seconds <= 0 || stop.stop_requested()) return fmt::format("no time was left for {}", Named());
  const auto token = Token();
  if (!token.ok()) return fmt::format("{} was not asked: {}", Named(), base::Message(token.status()));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = *token, .timeout = base::FromSeconds(seconds)});
  const rpc::StopCancelsCall guard(context, stop);
  const auto reader = channel_->Start(context, Asked(request, config_.planner, seed, seconds * kSearchShare));
  bool done = false, ended_itself = false;
  while (!done && !candidates.Enough() && !stop.stop_requested()) {
    grpc::ByteBuffer buffer;
    ended_itself = !reader->Read(&buffer);  // at the latest at the deadline of the call
    grpc::Slice bytes;
    if (ended_itself || !buffer.DumpToSingleSlice(&bytes).ok()) break;
    done = candidates.Take({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
  }
  if (!ended_itself) context.TryCancel();
  const grpc::Status ended = reader->Finish();
  base::log::Debug("planner asked", {{"planner", config_.name}, {"candidates", std::to_string(candidates.taken())}});
  return Failure(Named(), candidates, done, ended, seconds, stop.stop_requested());
}

}  // namespace medley::sched
