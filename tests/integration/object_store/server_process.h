// object_server.py in a process of its own, with a certificate of an own CA.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/object_store/object_store.h"

namespace medley::object_store {

class ServerProcess {
 public:
  // Starts it; a test fails where that is not possible.
  ServerProcess();
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  Settings settings() const;  // with the right keys and CA
  // These settings as variables of a process of Medley, "NAME=value". The second one is the secret key.
  std::vector<std::string> environment() const;
  // Lets the next `number` requests fail.
  void Fail(const std::string& how, int number) const;
  int seen() const;           // requests so far
  int uploads() const;        // that were begun and not ended
  std::string kinds() const;  // "GET=12 LIST=3 PUT=4": requests so far

 private:
  std::string Ask(const std::string& method, const std::string& path) const;

  std::filesystem::path folder_;
  std::string authority_;
  std::string endpoint_;
  pid_t pid_ = -1;
};

}  // namespace medley::object_store
