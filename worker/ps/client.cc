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
#include "worker/ps/sharding.h"
#include "worker/ps/wire.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

// The server's methods are streams of one request and one response (parameter_server.proto says why). On the wire such
// a call is a unary call, which costs the client one event instead of four.
constexpr char kPull[] = "/medley.job.v1.ParameterServerService/Pull";
constexpr char kPush[] = "/medley.job.v1.ParameterServerService/Push";

// Divides the keys of one table among the shards: result[s] has the indices of shard s's keys, ascending.
std::vector<std::vector<uint32_t>> Cut(const TableKeys& table, size_t shards) {
  std::vector<std::vector<uint32_t>> by_shard(shards);
  for (auto& places : by_shard) places.reserve(table.keys.size() / shards + table.keys.size() / 8);
  for (size_t k = 0; k < table.keys.size(); ++k) {
    const int shard = shards == 1 ? 0 : ShardOf(table.operation, table.keys[k], static_cast<int>(shards));
    by_shard[static_cast<size_t>(shard)].push_back(static_cast<uint32_t>(k));
  }
  return by_shard;
}

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

// The rows of some tables, divided among the shards, and for each shard among messages.
class Division {
 public:
  Division(std::span<const TableKeys> tables, size_t shards, size_t message_bytes, WireFormat format) {
    for (const TableKeys& table : tables) places_.push_back(Cut(table, shards));
    for (size_t s = 0; s < shards; ++s) {
      std::vector<TableLoad> loads;
      for (size_t t = 0; t < tables.size(); ++t) {
        const size_t row = static_cast<size_t>(tables[t].columns) * WireBytes(format);
        loads.push_back({places_[t][s].size(), sizeof(uint64_t) + row});
      }
      pieces_.push_back(CutPieces(loads, message_bytes));
      rounds_ = std::max(rounds_, pieces_.back().size());
    }
  }

  // Piece r of each shard is sent in round r. So few messages exist at a time.
  size_t rounds() const { return rounds_; }
  const std::vector<MessagePiece>& pieces(size_t shard) const { return pieces_[shard]; }
  std::span<const uint32_t> All(size_t table, size_t shard) const { return places_[table][shard]; }
  // The places in the table's keys.
  std::span<const uint32_t> Places(size_t shard, const RowRange& range) const {
    return std::span(places_[range.table][shard]).subspan(range.first, range.count);
  }

 private:
  std::vector<std::vector<std::vector<uint32_t>>> places_;  // [table][shard]
  std::vector<std::vector<MessagePiece>> pieces_;           // [shard]
  size_t rounds_ = 0;
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
    const Division division(tables, shards_.size(), options_.message_bytes, options_.format);
    rows.resize(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      rows[t].resize(tables[t].keys.size() * static_cast<size_t>(tables[t].columns));
    }
    for (size_t round = 0; round < division.rounds() && HasOthers(); ++round) {
      MEDLEY_RETURN_IF_ERROR(PullRound(step, tables, division, round, rows, limit));
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
    const Division division(tables, shards_.size(), options_.message_bytes, options_.format);
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
  std::vector<KeysAt> OwnParts(std::span<const TableKeys> tables, const Division& division) const {
    std::vector<KeysAt> parts;
    for (size_t t = 0; t < tables.size(); ++t) {
      parts.push_back({&tables[t], division.All(t, static_cast<size_t>(options_.own_shard))});
    }
    return parts;
  }

  rpc::CallOptions Call(const WaitLimit& limit) const {
    return {.token = options_.token, .timeout = Left(clock_, options_.timeout, limit)};
  }

  absl::Status PullRound(int64_t step, std::span<const TableKeys> tables, const Division& division, size_t round,
                         std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
    FanOut<pb::PullRequest, pb::PullResponse> calls;
    for (size_t s = 0; s < shards_.size(); ++s) {
      if (round >= division.pieces(s).size() || IsOwn(s)) continue;
      pb::PullRequest& request = calls.Add(s).request;
      request.set_generation(options_.generation);
      request.set_step(step);
      request.set_trainer(options_.trainer);
      request.set_format(static_cast<int>(options_.format));
      for (const RowRange& range : division.pieces(s)[round]) {
        pb::TableKeys& keys = *request.add_tables();
        keys.set_table(tables[range.table].operation);
        GatherKeys(tables[range.table], division.Places(s, range), *keys.mutable_keys());
      }
    }
    MEDLEY_RETURN_IF_ERROR(calls.Run(shards_, Call(limit), limit.stop, kPull, "pull"));
    for (const auto& call : calls.calls()) {
      const MessagePiece& piece = division.pieces(call->shard)[round];
      for (size_t r = 0; r < piece.size(); ++r) {
        MEDLEY_RETURN_IF_ERROR(Scatter(call->response, r, division.Places(call->shard, piece[r]),
                                       static_cast<size_t>(tables[piece[r].table].columns), options_.format,
                                       rows[piece[r].table]));
      }
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
absl::Status PsClient::Push(int64_t step, std::span<const TableKeys> tables,
                            std::span<const std::span<const float>> gradients, int64_t samples,
                            const WaitLimit& limit) {
  return rep_->Push(step, tables, gradients, samples, limit);
}

absl::StatusOr<RowsCopied> FetchRows(const RowsQuery& query, RowStore& store, const base::Clock& clock,
                                     const WaitLimit& limit) {
  const auto stub = pb::ParameterServerService::NewStub(rpc::MakeChannel(query.address, {.mutual_tls = query.tls}));
  grpc::ClientContext context;
  rpc::Prepare(context,
               {.token = query.token, .timeout = Left(clock, base::seconds(120), limit), .wait_for_ready = true});
  rpc::StopCancelsCall guard(context, limit.stop);
  pb::ExportRowsRequest request;
  request.set_source_generation(query.source_generation);
  request.set_since_step(query.since_step);
  request.set_shard(query.shard);
  request.set_shards(query.shards);
  const auto stream = stub->ExportRows(&context);
  stream->WriteLast(request, {});  // Finish reports a failure
  RowsCopied copied{.first_step = -1};
  absl::Status status;
  pb::ExportRowsResponse piece;
  while (status.ok() && stream->Read(&piece)) {
    if (copied.first_step < 0) copied.first_step = piece.at_step();
    copied.last_step = piece.at_step();
    copied.state_samples = piece.state_samples();
    const auto keys = ViewRaw<uint64_t>(piece.keys(), "keys");
    const auto values = ViewRaw<float>(piece.values(), "values");
    status = !keys.ok() ? keys.status() : !values.ok() ? values.status() : absl::OkStatus();
    if (status.ok() && !keys->empty()) status = store.Import(piece.table(), *keys, *values);
    if (status.ok()) copied.rows += static_cast<int64_t>(keys->size());
    if (!status.ok()) context.TryCancel();
  }
  const grpc::Status end = stream->Finish();
  MEDLEY_RETURN_IF_ERROR(status);
  MEDLEY_RETURN_IF_ERROR(rpc::FromGrpc(end, fmt::format("copying rows from parameter server {}", query.address)));
  return copied;
}

}  // namespace medley::worker
