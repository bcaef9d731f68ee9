#include "cli/price_service.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>

#include "common/base/file.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "kube/client/config.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"

namespace medley::cli {

namespace pb = scheduler::v1;

absl::StatusOr<PriceService> FindPriceService(std::string kubeconfig) {
  if (kubeconfig.empty()) kubeconfig = kube::ProcessEnvironment()("KUBECONFIG").value_or("");
  kubeconfig = kubeconfig.substr(0, kubeconfig.find(':'));
  const std::filesystem::path folder = std::filesystem::path(kubeconfig).parent_path();
  const auto ports = base::ReadFile(folder / "scheduler.ports", 1 << 16);
  if (kubeconfig.empty() || !ports.ok()) {
    return base::NotFound(
        "name a price file, or --server HOST:PORT of a scheduling service. Only the service of `medley run --keep` is "
        "found by itself, beside its kubeconfig ($KUBECONFIG or --kubeconfig). For that of another cluster use kubectl "
        "-n "
        "medley-system port-forward service/medley-scheduler 7100, and --server localhost:7100");
  }
  const auto parsed = document::ParseJson(*ports);
  if (!parsed.ok() || !parsed->is_object() || !parsed->contains("grpc") || !(*parsed)["grpc"].is_number_integer()) {
    return base::DataLoss("the file scheduler.ports beside {} does not hold the service's ports", kubeconfig);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string token, ReadTokenFile(folder / kSchedulerTokenFile));
  return PriceService{.address = "127.0.0.1:" + (*parsed)["grpc"].dump(), .token = token, .ca = ""};
}

absl::StatusOr<std::string> ReadTokenFile(const std::filesystem::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, 1 << 16));
  return text.substr(0, text.find_first_of(" \r\n"));
}

absl::Status ListPrices(const PriceService& service, const std::string& type, std::optional<base::WallTime> since,
                        pb::ListPricesResponse& response) {
  pb::ListPricesRequest request;
  request.set_type(type);
  if (since) MEDLEY_RETURN_IF_ERROR(model::TimeToProto(base::FormatTime(*since), *request.mutable_since()));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = service.token, .timeout = base::seconds(10)});
  rpc::ChannelOptions options;
  if (!service.ca.empty()) options.tls.emplace().root_certificates = service.ca;
  const auto stub = pb::SchedulerService::NewStub(rpc::MakeChannel(service.address, options));
  return rpc::FromGrpc(stub->ListPrices(&context, request, &response), service.address);
}

absl::StatusOr<std::string> ListPricesJson(const PriceService& service, const std::string& type,
                                           std::optional<base::WallTime> since) {
  pb::ListPricesResponse response;
  MEDLEY_RETURN_IF_ERROR(ListPrices(service, type, since, response));
  return model::ToJson(response);
}

absl::StatusOr<base::nanoseconds> ParseSince(const std::string& text) {
  if (text.size() > 1 && text.back() == 'd') {
    MEDLEY_ASSIGN_OR_RETURN(const double days, base::ParseQuantity(text.substr(0, text.size() - 1)));
    if (days >= 0 && days < 36500) return base::FromSeconds(days * 86400);
    return base::InvalidArgument("--since: '{}' is not a number of days", text);
  }
  return base::ParseDuration(text);
}

}  // namespace medley::cli
