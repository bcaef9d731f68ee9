// How the operator reaches the coordinator of a job. Values.
#pragma once

#include <string>

namespace medley::ops {

// What the processes of one job share to authenticate each other: the contents of its Secret.
struct JobCredentials {
  std::string token;           // every call carries it
  std::string ca_certificate;  // PEM; empty: the job's processes talk in plain text
  std::string ca_key;          // PEM; each process signs its own certificates with it
  bool operator==(const JobCredentials&) const = default;
  bool empty() const { return token.empty(); }
};

struct Connection {
  std::string job_uid;
  std::string address;  // "host:port"
  JobCredentials credentials;
  bool operator==(const Connection&) const = default;
};

}  // namespace medley::ops
