// The certificates by which processes of one group authenticate each other: each side of a connection shows one that
// the same CA has signed, for the same name, whatever its address.
//
// Immutable and thread-safe. One object serves all servers and channels of a process.
#pragma once

#include <memory>
#include <string>

namespace medley::rpc {

class MutualTls {
 public:
  // PEM texts, which do not change.
  struct Texts {
    std::string ca;
    std::string certificate;
    std::string key;
  };
  // Names of PEM files. One thread looks at them every second; connections that are made later use what they hold then.
  struct Files {
    std::string ca;
    std::string certificate;
    std::string key;  // may be the same file
  };
  // `name`: of the certificates.
  static std::shared_ptr<const MutualTls> FromTexts(const Texts& texts, std::string name);
  static std::shared_ptr<const MutualTls> FromFiles(const Files& files, std::string name);
  ~MutualTls();

  const std::string& name() const { return name_; }
  // For server.cc and channel.cc.
  struct Provider;
  const Provider& provider() const { return *provider_; }

 private:
  MutualTls(std::unique_ptr<Provider> provider, std::string name);

  const std::unique_ptr<Provider> provider_;
  const std::string name_;
};

}  // namespace medley::rpc
