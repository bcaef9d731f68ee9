// medley prices, medley prices --server: prints the prices that a scheduling service publishes.
// medley prices FILE: prints the prices that a service would publish for this file.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/price_service.h"
#include "cli/table.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/catalog/catalog_proto.h"
#include "scheduler-service/catalog/config.h"
#include "scheduler-service/catalog/price_file.h"

namespace medley::cli {
namespace {

namespace pb = scheduler::v1;

struct PricesFlags {
  std::string file;    // a price file, or a catalog configuration whose feeds are files
  std::string server;  // HOST:PORT of a service, instead of a file
  std::string kubeconfig;
  std::string token_file;
  std::string ca_file;  // not empty: use TLS
  std::string type;
  std::string since;
  std::string output = "table";
};

absl::StatusOr<pb::ListPricesResponse> AskServer(const PricesFlags& flags, std::optional<base::WallTime> since) {
  PriceService service{.address = flags.server, .token = "", .ca = ""};
  if (flags.server.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(service, FindPriceService(flags.kubeconfig));
  }
  if (!flags.token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(service.token, ReadTokenFile(flags.token_file));
  }
  if (!flags.ca_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(service.ca, base::ReadFile(flags.ca_file, 1 << 20));
  }
  pb::ListPricesResponse prices;
  MEDLEY_RETURN_IF_ERROR(ListPrices(service, flags.type, since, prices));
  return prices;
}

// Returns the prices that a service with this file would publish first.
absl::StatusOr<pb::ListPricesResponse> ReadPrices(const PricesFlags& flags, std::optional<base::WallTime> since) {
  base::SystemClock clock;
  sched::CatalogStore store;
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(flags.file, int64_t{64} << 20));
  std::vector<absl::Status> left_out;
  auto entries =
      sched::ParsePriceFile(text, std::filesystem::path(flags.file).filename().string(), clock.Now(), &left_out);
  for (const absl::Status& status : left_out) base::log::Warn("left a price out", {{"error", base::Message(status)}});
  if (entries.ok()) {
    store.Publish(std::move(*entries), clock.Now());
  } else {
    auto config = sched::ParseCatalogConfig(text, {});
    if (!config.ok()) {  // the file is neither: report the error for the kind that it resembles
      const bool is_config = text.find("feeds:") != std::string::npos;
      return base::Annotate(is_config ? config.status() : entries.status(), flags.file);
    }
    config->poller.last_good.clear();
    metrics::Registry metrics;
    sched::Poller poller(std::move(config->poller), std::move(config->feeds), store, metrics, clock);
    poller.Step({});
  }
  pb::ListPricesResponse response;
  sched::PricesToProto(store.History(flags.type, since), store.Get()->revision, clock.Now(), response);
  return response;
}

std::string Price(double value) { return value > 0 ? base::FormatDecimal(value, 4) : "-"; }

std::string Age(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f}s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f}h", seconds / 3600);
  return fmt::format("{:.0f}d", seconds / 86400);
}

std::string Change(double relative) { return relative == 0 ? "-" : fmt::format("{:+.1f}%", relative * 100); }

std::string NameOf(const pb::CatalogEntry& entry) {
  if (!entry.has_offering()) return entry.resource_type();
  const pb::Offering& o = entry.offering();
  const std::string key =
      fmt::format("{}/{}/{}/{}/{}", o.provider(), o.region(), o.zone(), o.instance_type(), o.capacity_type());
  return entry.resource_type().empty() ? key : entry.resource_type() + " @ " + key;
}

std::string PricesTable(const pb::ListPricesResponse& prices) {
  Table table({"TYPE", "USD/H UNIT", "USD/H INSTANCE", "UNITS", "AGE", "QUALITY", "CHANGE", "AVAILABLE", "SOURCE"});
  for (const pb::PriceSeries& series : prices.series()) {
    const pb::CatalogEntry& entry = series.current();
    table.Add({NameOf(entry), Price(entry.price_per_unit_hour()), Price(entry.price_per_instance_hour()),
               entry.has_offering() ? base::FormatDecimal(entry.offering().units_per_instance(), 3) : "1",
               Age(series.age_seconds()), entry.quality(), Change(series.relative_change()),
               entry.available() ? "yes" : "no", entry.source()});
  }
  return table.Text();
}

std::string SeriesTable(const pb::ListPricesResponse& prices) {
  Table table({"TIME", "TYPE", "USD/H UNIT", "USD/H INSTANCE", "QUALITY", "REVISION"});
  for (const pb::PriceSeries& series : prices.series()) {
    for (const pb::PricePoint& point : series.points()) {
      table.Add({model::TimeFromProto(point.time()), NameOf(series.current()), Price(point.price_per_unit_hour()),
                 Price(point.price_per_instance_hour()), point.quality(), std::to_string(point.catalog_revision())});
    }
  }
  return table.Text();
}

absl::Status Run(const PricesFlags& flags) {
  base::log::Configure("medley", base::log::Level::kWarn);
  if (!flags.file.empty() && !flags.server.empty())
    return base::InvalidArgument("name a file or --server HOST:PORT, but not both");
  std::optional<base::WallTime> since;
  if (!flags.since.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const base::nanoseconds ago, ParseSince(flags.since));
    since = base::SystemClock().Now() - std::chrono::duration_cast<base::WallTime::duration>(ago);
  }
  MEDLEY_ASSIGN_OR_RETURN(const pb::ListPricesResponse prices,
                          !flags.file.empty() ? ReadPrices(flags, since) : AskServer(flags, since));
  if (prices.series().empty() && !flags.type.empty())
    return base::NotFound("no price of '{}' is known; without --type all prices are listed", flags.type);
  std::string text;
  if (flags.output == "json") text = model::ToJson(prices, true);
  if (flags.output == "yaml") text = model::ToYaml(prices);
  if (flags.output == "table") text = PricesTable(prices) + (since ? "\n" + SeriesTable(prices) : "");
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddPrices(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("prices", "Print the prices of a running scheduling service or of a file");
  const auto flags = std::make_shared<PricesFlags>();
  command->add_option("file", flags->file,
                      "price file, or catalog configuration with feeds of type file (docs/operate/prices.md)");
  command->add_option(
      "--server", flags->server,
      "HOST:PORT of the gRPC port of medley-scheduler; default: the one that medley run --keep has started");
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "kubeconfig of the cluster of medley run, to use instead of $KUBECONFIG");
  command->add_option("--token-file", flags->token_file, "file with the bearer token for the server");
  command->add_option("--ca", flags->ca_file, "file with the CA (PEM) of the server's certificate; turns TLS on");
  command->add_option("--type", flags->type, "only this resource type, instance type or offering");
  command->add_option("--since", flags->since, "also print the prices published within this time, such as 12h or 7d");
  command->add_option("-o,--output", flags->output, "table, json or yaml")
      ->check(CLI::IsMember({"table", "json", "yaml"}))
      ->capture_default_str();
  command->callback([flags, &exit_status] {
    const absl::Status status = Run(*flags);
    if (!status.ok()) std::fprintf(stderr, "medley prices: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
