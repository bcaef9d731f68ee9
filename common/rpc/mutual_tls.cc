#include "common/rpc/mutual_tls.h"

#include <grpcpp/security/tls_certificate_provider.h>

#include <utility>
#include <vector>

#include "common/rpc/certificate_provider.h"

namespace medley::rpc {
namespace {

namespace experimental = grpc::experimental;

constexpr unsigned kLookEverySeconds = 1;

}  // namespace

std::shared_ptr<const MutualTls> MutualTls::FromTexts(const Texts& texts, std::string name) {
  const std::vector<experimental::IdentityKeyCertPair> identity = {{texts.key, texts.certificate}};
  auto provider = std::make_unique<Provider>();
  provider->certificates = std::make_shared<experimental::StaticDataCertificateProvider>(texts.ca, identity);
  provider->server = {.certificate = {.file = {}, .text = texts.certificate},
                      .key = {.file = {}, .text = texts.key},
                      .client_ca = {.file = {}, .text = texts.ca}};
  return std::shared_ptr<const MutualTls>(new MutualTls(std::move(provider), std::move(name)));
}

std::shared_ptr<const MutualTls> MutualTls::FromFiles(const Files& files, std::string name) {
  auto provider = std::make_unique<Provider>();
  provider->certificates = std::make_shared<experimental::FileWatcherCertificateProvider>(files.key, files.certificate,
                                                                                          files.ca, kLookEverySeconds);
  provider->server = {.certificate = {.file = files.certificate, .text = {}},
                      .key = {.file = files.key, .text = {}},
                      .client_ca = {.file = files.ca, .text = {}}};
  return std::shared_ptr<const MutualTls>(new MutualTls(std::move(provider), std::move(name)));
}

MutualTls::MutualTls(std::unique_ptr<Provider> provider, std::string name)
    : provider_(std::move(provider)), name_(std::move(name)) {}

MutualTls::~MutualTls() = default;

}  // namespace medley::rpc
