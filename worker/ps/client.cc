#include "worker/ps/client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"
#include "worker/ps/half_floats.h"
#include "worker/ps/local_shard.h"
#include "worker/ps/message_pieces.h"
#include "worker/ps/row_division.h"
#include "worker/ps/wire.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

// The server's methods are streams of one request and one response (parameter_server.proto says why). On the wire such
// a call is a unary call, which costs the client one event instead of four.
constexpr char kPull[] = "/medley.job.v1.ParameterServerService/Pull";
constexpr char kPush[] = "/medley.job.v1.ParameterServerService/Push";

void GatherKeys(const TableKeys& table, std::span<const uint32_t> places, std::string& bytes) {
  const std::span<uint64_t> keys = MakeRoom<uint64_t>(places.size(), bytes);
  for (size_t i = 0; i < places.size(); ++i) keys[i] = table.keys[places[i]];
}

// Whether the places follow each other without a gap, as those of the only shard do: then their rows are one block.
bool AreOneBlock(std::span<const uint32_t> places) {
  return !places.empty() && places.back() - places.front() + 1 == places.size();
}

base::nanoseconds Left(const base::Clock& clock, base::nanoseconds timeout, const WaitLimit& limit) {
  const base::SteadyTime now = clock.Steady();
  const base::nanoseconds left = limit.deadline - now;  // SteadyTime::max() - now does not overflow: now > 0
  return std::max(std::min(timeout, left), base::nanoseconds(base::milliseconds(1)));
}

struct Shard {
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
};

// Some calls to shards that run at the same time; the result is the error of the first call that failed.
template <typename Request, typename Response>
class FanOut {
 public:
  struct Call {
    size_t shard = 0;
    Request request;
    Response response;
    grpc::ClientContext context;
    grpc::Status status;
  };

  Call& Add(size_t shard) {
    calls_.push_back(std::make_unique<Call>());
    calls_.back()->shard = shard;
    return *calls_.back();
  }
  const std::vector<std::unique_ptr<Call>>& calls() const { return calls_; }

  // `method`: the full name; `what`: its name in errors.
  absl::Status Run(const std::vector<Shard>& shards, const rpc::CallOptions& options, std::stop_token stop,
                   const char* method, const char* what) {
    for (const auto& call : calls_) rpc::Prepare(call->context, options);
    // This thread polls the queue, so a call needs no switch between threads.
    grpc::CompletionQueue queue;
    {
      std::stop_callback cancel(stop, [&] {
        for (const auto& call : calls_) call->context.TryCancel();
      });
      std::vector<std::unique_ptr<grpc::ClientAsyncResponseReader<Response>>> readers;
      for (const auto& call : calls_) {
        grpc::TemplatedGenericStub<Request, Response> stub(shards[call->shard].channel);
        readers.push_back(stub.PrepareUnaryCall(&call->context, method, call->request, &queue));
        readers.back()->StartCall();
        readers.back()->Finish(&call->response, &call->status, nullptr);
      }
      void* tag = nullptr;
      bool ok = false;
      // Bounded: every call has a deadline.
      for (size_t c = 0; c < calls_.size(); ++c)
        MEDLEY_CHECK(queue.Next(&tag, &ok), "the completion queue was shut down during a call");
    }
    queue.Shutdown();
    if (stop.stop_requested()) return base::Cancelled("the {} was stopped", what);
    for (const auto& call : calls_) {
      MEDLEY_RETURN_IF_ERROR(rpc::FromGrpc(
          call->status, fmt::format("{} at shard {} ({})", what, call->shard, shards[call->shard].address)));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace

class PsClient::Rep {
 public:
  Rep(PsClientOptions options, const base::Clock& clock) : options_(std::move(options)), clock_(clock) {
    for (const std::string& address : options_.shards) {
      const bool own = options_.own != nullptr && options_.own_shard == std::ssize(shards_);
      shards_.push_back({address, own ? nullptr : rpc::MakeChannel(address, {.mutual_tls = options_.tls})});
    }
    if (options_.own != nullptr) own_.emplace(*options_.own, options_.generation);
  }

  absl::Status Connect(const WaitLimit& limit) {
    const base::SteadyTime end = clock_.Steady() + Left(clock_, options_.timeout, limit);
    for (const Shard& shard : shards_) {
      bool connected = shard.channel == nullptr;
      while (!connected) {
        if (limit.stop.stop_requested())
          return base::Cancelled("connecting to parameter server {} was stopped", shard.address);
        if (clock_.Steady() >= end)
          return base::Unavailable("parameter server {} does not accept connections", shard.address);
        const auto slice = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(100, GPR_TIMESPAN));
        connected = shard.channel->WaitForConnected(slice);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) {
    return PullChanged(step, tables, {}, rows, limit);
  }

  absl::StatusOr<RowsAhead> PullAhead(int64_t step, std::span<const TableKeys> tables,
                                      std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
    RowsAhead ahead;
    if (!options_.rows_ahead || !HasOthers()) return ahead;
    ahead.at.assign(shards_.size(), step - 1);
    if (own_) ahead.at[static_cast<size_t>(options_.own_shard)] = -1;
    const RowDivision division(tables, shards_.size(), options_.message_bytes, options_.format);
    MakeRoomFor(tables, rows);
    for (size_t round = 0; round < division.rounds(); ++round) {
      Round calls(step, tables, division, round);
      for (size_t s = 0; s < shards_.size(); ++s) {
        if (round < division.pieces(s).size() && !IsOwn(s)) AddPull(calls, s).set_ahead(true);
      }
      MEDLEY_RETURN_IF_ERROR(calls.fan_out.Run(shards_, Call(limit), limit.stop, kPull, "pull ahead"));
      for (const auto& call : calls.fan_out.calls()) {
        int64_t& at = ahead.at[call->shard];
        at = std::min(at, call->response.at());
        if (call->response.at() >= 0) MEDLEY_RETURN_IF_ERROR(TakeRows(calls, *call, rows));
      }
    }
    return ahead;
  }

  absl::Status PullChanged(int64_t step, std::span<const TableKeys> tables, const RowsAhead& ahead,
                           std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
    const RowDivision division(tables, shards_.size(), options_.message_bytes, options_.format);
    MakeRoomFor(tables, rows);
    for (size_t round = 0; round < division.rounds() && HasOthers(); ++round) {
      Round calls(step, tables, division, round);
      for (size_t s = 0; s < shards_.size(); ++s) {
        const int64_t at = ahead.at.empty() ? -1 : ahead.at[s];
        // Those of the step before are complete: without this trainer's push no later step is applied.
        if (round >= division.pieces(s).size() || IsOwn(s) || at == step - 1) continue;
        pb::PullRequest& request = AddPull(calls, s);
        if (at >= 0) request.set_since(at);
      }
      MEDLEY_RETURN_IF_ERROR(calls.fan_out.Run(shards_, Call(limit), limit.stop, kPull, "pull"));
      for (const auto& call : calls.fan_out.calls()) MEDLEY_RETURN_IF_ERROR(TakeRows(calls, *call, rows));
    }
    if (!own_) return absl::OkStatus();
    std::vector<float*> to;
    for (std::vector<float>& all : rows) to.push_back(all.data());
    const base::SteadyTime end = clock_.Steady() + Left(clock_, options_.timeout, limit);
    const std::vector<KeysAt> own = OwnParts(tables, division);
    MEDLEY_RETURN_IF_ERROR(own_->Pull(step, own, to, clock_, {limit.stop, end}));
    for (size_t t = 0; options_.format != WireFormat::kFloat32 && t < tables.size(); ++t) {
      const auto columns = static_cast<size_t>(tables[t].columns);
      for (const uint32_t place : own[t].places) {
        RoundAsOnWire(options_.format, WireValues::kWeights, std::span(rows[t]).subspan(place * columns, columns));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit& limit) {
    const RowDivision division(tables, shards_.size(), options_.message_bytes, options_.format);
    if (own_) {
      MEDLEY_RETURN_IF_ERROR(
          own_->Push(step, options_.trainer, OwnParts(tables, division), gradients, samples, options_.format));
    }
    for (size_t round = 0; round < division.rounds() && HasOthers(); ++round) {
      FanOut<pb::PushRequest, pb::PushResponse> calls;
      for (size_t s = 0; s < shards_.size(); ++s) {
        if (round >= division.pieces(s).size() || IsOwn(s)) continue;
        pb::PushRequest& request = calls.Add(s).request;
        request.set_generation(options_.generation);
        request.set_step(step);
        request.set_trainer(options_.trainer);
        request.set_samples(samples);
        request.set_part(static_cast<int>(round));
        request.set_parts(static_cast<int>(division.pieces(s).size()));
        request.set_format(static_cast<int>(options_.format));
        for (const RowRange& range : division.pieces(s)[round]) {
          AddGradients(tables[range.table], division.Places(s, range), gradients[range.table], options_.format,
                       request);
        }
        // Before it is sent: a step that is applied anywhere has been kept.
        if (options_.log != nullptr) options_.log->Add(LogPlace(), static_cast<int>(s), request);
      }
      MEDLEY_RETURN_IF_ERROR(calls.Run(shards_, Call(limit), limit.stop, kPush, "push"));
    }
    return absl::OkStatus();
  }

 private:
  PushLog::Place LogPlace() const {
    return {options_.generation, options_.trainer, options_.trainers, static_cast<int>(shards_.size())};
  }
  bool IsOwn(size_t shard) const { return own_ && shard == static_cast<size_t>(options_.own_shard); }
  bool HasOthers() const { return shards_.size() > (own_ ? 1U : 0U); }

  // The keys of the shard in this process, one part a table.
  std::vector<KeysAt> OwnParts(std::span<const TableKeys> tables, const RowDivision& division) const {
    std::vector<KeysAt> parts;
    for (size_t t = 0; t < tables.size(); ++t) {
      parts.push_back({&tables[t], division.All(t, static_cast<size_t>(options_.own_shard))});
    }
    return parts;
  }

  rpc::CallOptions Call(const WaitLimit& limit) const {
    return {.token = options_.token, .timeout = Left(clock_, options_.timeout, limit)};
  }

  using PullCalls = FanOut<pb::PullRequest, pb::PullResponse>;
  // The pulls of one piece of each shard.
  struct Round {
    Round(int64_t of, std::span<const TableKeys> keys, const RowDivision& pieces, size_t index)
        : step(of), tables(keys), division(pieces), number(index) {}
    const int64_t step;
    const std::span<const TableKeys> tables;
    const RowDivision& division;
    const size_t number;
    PullCalls fan_out;
  };

  static void MakeRoomFor(std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows) {
    rows.resize(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      rows[t].resize(tables[t].keys.size() * static_cast<size_t>(tables[t].columns));
    }
  }

  pb::PullRequest& AddPull(Round& round, size_t shard) const {
    pb::PullRequest& request = round.fan_out.Add(shard).request;
    request.set_generation(options_.generation);
    request.set_step(round.step);
    request.set_trainer(options_.trainer);
    request.set_format(static_cast<int>(options_.format));
    for (const RowRange& range : round.division.pieces(shard)[round.number]) {
      pb::TableKeys& keys = *request.add_tables();
      keys.set_table(round.tables[range.table].operation);
      GatherKeys(round.tables[range.table], round.division.Places(shard, range), *keys.mutable_keys());
    }
    return request;
  }

  // Copies what a shard has answered to the places of its rows.
  absl::Status TakeRows(const Round& round, const PullCalls::Call& call, std::vector<std::vector<float>>& rows) const {
    const MessagePiece& piece = round.division.pieces(call.shard)[round.number];
    std::vector<uint32_t> changed;
    for (size_t r = 0; r < piece.size(); ++r) {
      std::span<const uint32_t> places = round.division.Places(call.shard, piece[r]);
      if (call.request.has_since()) {
        MEDLEY_RETURN_IF_ERROR(ChangedPlaces(call.response, r, places, changed));
        places = changed;
      }
      const auto columns = static_cast<size_t>(round.tables[piece[r].table].columns);
      MEDLEY_RETURN_IF_ERROR(Scatter(call.response, r, places, columns, options_.format, rows[piece[r].table]));
    }
    return absl::OkStatus();
  }

  // The places of the rows of entry `entry` of the response, which names them among `places`.
  static absl::Status ChangedPlaces(const pb::PullResponse& response, size_t entry, std::span<const uint32_t> places,
                                    std::vector<uint32_t>& changed) {
    changed.clear();
    if (static_cast<size_t>(response.tables_size()) <= entry) return absl::OkStatus();  // Scatter says so
    MEDLEY_ASSIGN_OR_RETURN(const auto among,
                            ViewRaw<uint32_t>(response.tables(static_cast<int>(entry)).places(), "tables.places"));
    for (const uint32_t place : among) {
      if (place >= places.size()) return base::DataLoss("a shard returned a row that was not requested");
      changed.push_back(places[place]);
    }
    return absl::OkStatus();
  }

  static void AddGradients(const TableKeys& table, std::span<const uint32_t> places, std::span<const float> gradients,
                           WireFormat format, pb::PushRequest& request) {
    const auto columns = static_cast<size_t>(table.columns);
    pb::TableGradients& out = *request.add_tables();
    out.set_table(table.operation);
    GatherKeys(table, places, *out.mutable_keys());
    if (format != WireFormat::kFloat32) {
      for (const uint32_t place : places) {
        EncodeFloats(format, WireValues::kGradients, gradients.subspan(place * columns, columns),
                     *out.mutable_gradients());
      }
      return;
    }
    if (AreOneBlock(places)) {
      AppendRaw(gradients.subspan(places.front() * columns, places.size() * columns), *out.mutable_gradients());
      return;
    }
    const std::span<float> to = MakeRoom<float>(places.size() * columns, *out.mutable_gradients());
    for (size_t i = 0; i < places.size(); ++i) {
      std::memcpy(to.data() + i * columns, gradients.data() + places[i] * columns, columns * sizeof(float));
    }
  }

  // Copies entry `entry` of the response to the places of its rows.
  static absl::Status Scatter(const pb::PullResponse& response, size_t entry, std::span<const uint32_t> places,
                              size_t columns, WireFormat format, std::vector<float>& rows) {
    if (static_cast<size_t>(response.tables_size()) <= entry ||
        response.tables(static_cast<int>(entry)).rows().size() != places.size() * columns * WireBytes(format)) {
      return base::DataLoss("a shard returned a different number of rows than requested");
    }
    const char* from = response.tables(static_cast<int>(entry)).rows().data();
    for (size_t i = 0; format != WireFormat::kFloat32 && i < places.size(); ++i) {
      DecodeFloats(format, WireValues::kWeights, from + i * columns * WireBytes(format),
                   std::span(rows).subspan(places[i] * columns, columns));
    }
    if (format != WireFormat::kFloat32) return absl::OkStatus();
    if (AreOneBlock(places)) {
      std::memcpy(rows.data() + places.front() * columns, from, places.size() * columns * sizeof(float));
      return absl::OkStatus();
    }
    for (size_t i = 0; i < places.size(); ++i) {
      std::memcpy(rows.data() + places[i] * columns, from + i * columns * sizeof(float), columns * sizeof(float));
    }
    return absl::OkStatus();
  }

  const PsClientOptions options_;
  const base::Clock& clock_;
  std::vector<Shard> shards_;  // without a channel: in this process
  std::optional<LocalShard> own_;
};

PsClient::PsClient(PsClientOptions options, const base::Clock& clock)
    : rep_(std::make_unique<Rep>(std::move(options), clock)) {}
PsClient::~PsClient() = default;
absl::Status PsClient::Connect(const WaitLimit& limit) { return rep_->Connect(limit); }
absl::Status PsClient::Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                            const WaitLimit& limit) {
  return rep_->Pull(step, tables, rows, limit);
}
absl::StatusOr<RowsAhead> PsClient::PullAhead(int64_t step, std::span<const TableKeys> tables,
                                              std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
  return rep_->PullAhead(step, tables, rows, limit);
}
absl::Status PsClient::PullChanged(int64_t step, std::span<const TableKeys> tables, const RowsAhead& ahead,
                                   std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
  return rep_->PullChanged(step, tables, ahead, rows, limit);
}
absl::Status PsClient::Push(int64_t step, std::span<const TableKeys> tables,
                            std::span<const std::span<const float>> gradients, int64_t samples,
                            const WaitLimit& limit) {
  return rep_->Push(step, tables, gradients, samples, limit);
}

}  // namespace medley::worker
