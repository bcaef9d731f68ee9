#include "worker/trainer/session.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <thread>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "common/rpc/utf8_strings.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
using Stream = grpc::ClientReaderWriter<pb::SessionRequest, pb::SessionResponse>;

void Shorten(std::string& message) {
  constexpr size_t kLongest = size_t{1} << 14;  // far below what the coordinator receives
  if (message.size() > kLongest) message.resize(kLongest);
}

rpc::ChannelOptions Reconnecting(const SessionOptions& options) {
  return {.mutual_tls = options.tls,
          .connect_backoff_first = base::milliseconds(50),
          .connect_backoff_max = base::milliseconds(500)};
}

constexpr base::nanoseconds kTryHint = base::seconds(3);  // then the claims say again where the coordinator is

std::string AddressOf(const SessionOptions& options) {
  return options.address_book == nullptr ? options.coordinator : options.address_book->current().address;
}

class RendezvousStore final : public KeyValueStore {
 public:
  RendezvousStore(const SessionOptions& options, int64_t generation)
      : token_(options.token),
        generation_(generation),
        stub_(pb::MemberService::NewStub(rpc::MakeChannel(AddressOf(options), Reconnecting(options)))) {}

  absl::Status Put(const std::string& key, const std::string& value) override {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token_, .timeout = base::seconds(20), .wait_for_ready = true});
    pb::PutRendezvousRequest request;
    request.set_generation(generation_);
    request.set_key(key);
    request.set_value(value);
    pb::PutRendezvousResponse response;
    return rpc::FromGrpc(stub_->PutRendezvous(&context, request, &response), "writing rendezvous key " + key);
  }

  absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys, base::nanoseconds timeout,
                                               std::stop_token stop) override {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token_, .timeout = timeout, .wait_for_ready = true});
    rpc::StopCancelsCall guard(context, std::move(stop));
    pb::GetRendezvousRequest request;
    request.set_generation(generation_);
    for (const std::string& key : keys) request.add_keys(key);
    pb::GetRendezvousResponse response;
    MEDLEY_RETURN_IF_ERROR(rpc::FromGrpc(stub_->GetRendezvous(&context, request, &response),
                                         fmt::format("reading {} rendezvous keys", keys.size())));
    if (response.values_size() != static_cast<int>(keys.size())) {
      return base::DataLoss("rendezvous: the coordinator returned {} values for {} keys", response.values_size(),
                            keys.size());
    }
    return std::vector<std::string>(response.values().begin(), response.values().end());
  }

 private:
  const std::string token_;
  const int64_t generation_;
  const std::unique_ptr<pb::MemberService::Stub> stub_;
};

}  // namespace

class SessionClient::Rep {
 public:
  Rep(SessionOptions options, base::Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        book_(options_.address_book != nullptr ? options_.address_book
                                               : std::make_shared<CoordinatorAddress>(options_.coordinator, Volume())) {
  }

  absl::Status Run(const std::function<void(const pb::SessionResponse&)>& on_message, const std::function<Held()>& held,
                   std::stop_token stop) {
    base::Backoff backoff({.first = base::milliseconds(50), .max = base::seconds(2)}, options_.seed);
    base::SteadyTime last_contact = clock_.Steady();
    while (!stop.stop_requested()) {
      const std::string address = UseCurrentAddress();
      bool heard = false;
      const absl::Status end = RunOnce(
          address, held(),
          [&](const pb::SessionResponse& response) {
            heard = true;
            last_contact = clock_.Steady();
            on_message(response);
          },
          stop);
      if (stop.stop_requested()) break;
      // While the coordinator's pod is replaced, another job's coordinator may have its address.
      if (end.code() == absl::StatusCode::kUnauthenticated && options_.address_book == nullptr) return end;
      if (heard) backoff.Reset();
      const base::nanoseconds silence = clock_.Steady() - last_contact;
      if (silence > options_.give_up) {
        return base::Unavailable("the coordinator at {} has been unreachable for {:.0f} s: {}", address,
                                 base::ToSeconds(silence), base::Message(end));
      }
      base::log::Debug("the session with the coordinator ended",
                       {{"member", options_.member}, {"status", base::ToString(end)}});
      // A broken session is resumed at once, before the coordinator treats this member as lost. The claims are looked
      // at meanwhile, and the volume may be slow.
      if (!heard) FindCoordinator(stop);
      if (book_->current().address == address) {
        rpc::PauseBeforeCallingAgain(*channel_, clock_, backoff.Next(), stop);
      }
    }
    return absl::OkStatus();
  }

  void Send(pb::SessionRequest request) {
    // Faults quote the data and errors of libraries, in any encoding and of any length.
    if (request.has_fault()) Shorten(*request.mutable_fault()->mutable_message());
    if (request.has_probed()) Shorten(*request.mutable_probed()->mutable_error());
    rpc::EscapeStrings(request);
    base::MutexLock lock(mutex_);
    if (request.has_leaving()) leaving_ = request;
    if (stream_ != nullptr) stream_->Write(request);  // ignores failure: Run's Read fails too and reconnects
  }

 private:
  void FindCoordinator(const std::stop_token& stop) {
    if (book_->hinted() && clock_.Steady() - hinted_at_ < kTryHint) return;
    book_->DropHint();
    book_->LookAtClaims(stop);
  }

  std::string UseCurrentAddress() {
    std::string address = book_->current().address;
    if (address != channel_address_) {
      channel_address_ = address;
      channel_ = rpc::MakeChannel(address, Reconnecting(options_));
      stub_ = pb::MemberService::NewStub(channel_);
    }
    return address;
  }

  // One session, until it ends or another coordinator leads.
  absl::Status RunOnce(const std::string& address, const Held& held,
                       const std::function<void(const pb::SessionResponse&)>& on_message, std::stop_token stop) {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = options_.token});
    rpc::StopCancelsCall guard(context, std::move(stop));
    // A coordinator that was stopped, or whose node is dead, does not end the session.
    const std::jthread look([&](const std::stop_token& end) { LeaveForNewClaim(context, end); });
    const auto stream = stub_->Session(&context);
    if (Connect(*stream, held)) {
      pb::SessionResponse response;
      while (stream->Read(&response)) {
        if (!Obeys(response)) {
          context.TryCancel();
          break;
        }
        if (!response.has_welcome()) on_message(response);
      }
    }
    Disconnect();
    return rpc::FromGrpc(stream->Finish(), "session with " + address);
  }

  // Ends the session when another coordinator has claimed the job.
  void LeaveForNewClaim(grpc::ClientContext& session, const std::stop_token& end) {
    while (clock_.SleepFor(book_->interval(), end)) {
      if (book_->LookAtClaims(end)) session.TryCancel();
    }
  }

  // False: another coordinator leads, and nothing more that this one says counts.
  bool Obeys(const pb::SessionResponse& response) {
    if (response.has_welcome()) return book_->Welcome(response.welcome().term());
    if (!response.has_redirect()) return true;
    book_->Hint({response.redirect().term(), response.redirect().address()});
    hinted_at_ = clock_.Steady();
    return false;
  }

  bool Connect(Stream& stream, const Held& held) {
    pb::SessionRequest request;
    pb::Hello& hello = *request.mutable_hello();
    hello.set_member(options_.member);
    hello.set_role(options_.role);
    hello.set_pool(options_.pool);
    hello.set_address(options_.address);
    hello.set_held_generation(held.generation);
    hello.set_held_step(held.step);
    hello.set_instance(options_.instance);
    hello.set_coordinator_term(book_->current().term);
    base::MutexLock lock(mutex_);
    if (!stream.Write(request)) return false;
    if (leaving_.has_value() && !stream.Write(*leaving_)) return false;
    stream_ = &stream;
    return true;
  }

  void Disconnect() {
    base::MutexLock lock(mutex_);
    stream_ = nullptr;
  }

  const SessionOptions options_;
  base::Clock& clock_;
  const std::shared_ptr<CoordinatorAddress> book_;
  // Used by the thread of Run only.
  base::SteadyTime hinted_at_{};
  std::string channel_address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::MemberService::Stub> stub_;
  base::Mutex mutex_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<pb::SessionRequest> leaving_ ABSL_GUARDED_BY(mutex_);
};

SessionClient::SessionClient(SessionOptions options, base::Clock& clock)
    : rep_(std::make_unique<Rep>(std::move(options), clock)) {}
SessionClient::~SessionClient() = default;
absl::Status SessionClient::Run(const std::function<void(const pb::SessionResponse&)>& on_message,
                                const std::function<Held()>& held, std::stop_token stop) {
  return rep_->Run(on_message, held, std::move(stop));
}
void SessionClient::Send(pb::SessionRequest request) { rep_->Send(std::move(request)); }

std::unique_ptr<KeyValueStore> MakeRendezvousStore(const SessionOptions& options, int64_t generation) {
  return std::make_unique<RendezvousStore>(options, generation);
}

}  // namespace medley::worker
