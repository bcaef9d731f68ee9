// Measures what TLS would cost the exchange of tensors: two threads send the same bytes to and fro over a TCP
// connection on loopback, in plain text and with TLS 1.3 (AES-128-GCM), as the processes of a job would.
//
//   tls_bench [--bytes 1048576] [--seconds 2]
//
// Prints one line of JSON: for one message in one direction, the processor time of sender and receiver together, which
// does not depend on how busy the machine is, and the elapsed time.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"

namespace medley::bench {
namespace {

constexpr char kLast = 'q';  // the first byte of the last message

struct Cost {
  double cpu_seconds = 0;  // of both ends
  double seconds = 0;
};

template <auto Function>
struct Free {
  template <typename T>
  void operator()(T* pointer) const {
    Function(pointer);
  }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Free<SSL_free>>;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// One end of the connection; `tls` null: plain text.
struct End {
  int fd = -1;
  Connection tls;

  void Send(const std::vector<char>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const auto left = bytes.size() - done;
      const ssize_t n = tls ? SSL_write(tls.get(), bytes.data() + done, static_cast<int>(left))
                            : send(fd, bytes.data() + done, left, MSG_NOSIGNAL);
      MEDLEY_CHECK(n > 0, "send");
      done += static_cast<size_t>(n);
    }
  }
  void Receive(std::vector<char>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const auto left = bytes.size() - done;
      const ssize_t n = tls ? SSL_read(tls.get(), bytes.data() + done, static_cast<int>(left))
                            : recv(fd, bytes.data() + done, left, 0);
      MEDLEY_CHECK(n > 0, "receive");
      done += static_cast<size_t>(n);
    }
  }
};

void Connect(End& a, End& b) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  MEDLEY_CHECK(bind(listener, raw, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, raw, &size) == 0,
               "listen");
  a.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MEDLEY_CHECK(connect(a.fd, raw, size) == 0, "connect");
  b.fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  MEDLEY_CHECK(b.fd >= 0, "accept");
  close(listener);
  for (const int fd : {a.fd, b.fd}) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // as gloo does
  }
}

Context MakeContext(const std::filesystem::path& folder, const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  const std::string identity = (folder / "identity.pem").string(), ca = (folder / "ca.crt").string();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  MEDLEY_CHECK(SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") == 1 &&
                   SSL_CTX_use_certificate_chain_file(context.get(), identity.c_str()) == 1 &&
                   SSL_CTX_use_PrivateKey_file(context.get(), identity.c_str(), SSL_FILETYPE_PEM) == 1 &&
                   SSL_CTX_load_verify_locations(context.get(), ca.c_str(), nullptr) == 1,
               "certificates");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

Connection Wrap(const End& end, SSL_CTX* context) {
  Connection tls(SSL_new(context));
  SSL_set_fd(tls.get(), end.fd);
  return tls;
}

Cost Measure(End& a, End& b, size_t bytes, base::nanoseconds enough) {
  std::vector<char> mine(bytes, 'x'), theirs(bytes);
  const base::SystemClock clock;
  int64_t rounds = 0;
  const double cpu = CpuSeconds();
  const base::SteadyTime begin = clock.Steady();
  std::jthread echo([&] {
    do {
      b.Receive(theirs);
      b.Send(theirs);
    } while (theirs[0] != kLast);
  });
  for (; clock.Steady() - begin < enough; ++rounds) {
    a.Send(mine);
    a.Receive(mine);
  }
  mine[0] = kLast;
  a.Send(mine);
  a.Receive(mine);
  echo.join();
  const auto messages = static_cast<double>(2 * (rounds + 1));
  return {(CpuSeconds() - cpu) / messages, base::ToSeconds(clock.Steady() - begin) / messages};
}

int Run(size_t bytes, double seconds) {
  const base::SystemClock clock;
  const auto authority = certificates::MakeJobAuthority("bench", clock.Now()).value();
  const auto own = certificates::IssueForJob(authority, "bench", clock.Now(), std::chrono::hours(1)).value();
  const std::filesystem::path folder = base::MakeTempDir("medley-tls-bench").value();
  MEDLEY_CHECK(base::WriteFileAtomic(folder / "ca.crt", authority.certificate).ok() &&
                   base::WriteFileAtomic(folder / "identity.pem", own.certificate + own.key).ok(),
               "write certificates");
  End a, b;
  Connect(a, b);
  const Cost plain = Measure(a, b, bytes, base::FromSeconds(seconds));
  const Context client = MakeContext(folder, TLS_client_method()), server = MakeContext(folder, TLS_server_method());
  a.tls = Wrap(a, client.get());
  b.tls = Wrap(b, server.get());
  std::jthread accepting([&] { MEDLEY_CHECK(SSL_accept(b.tls.get()) == 1, "accept TLS"); });
  MEDLEY_CHECK(SSL_connect(a.tls.get()) == 1, "connect TLS");
  accepting.join();
  const Cost tls = Measure(a, b, bytes, base::FromSeconds(seconds));
  base::RemoveTempDir(folder);
  fmt::print(R"({{"bytes": {}, "plain_cpu_us": {:.1f}, "tls_cpu_us": {:.1f}, "plain_us": {:.1f}, "tls_us": {:.1f}, )"
             R"("tls_costs_cpu_us_per_mib": {:.0f}}})"
             "\n",
             bytes, plain.cpu_seconds * 1e6, tls.cpu_seconds * 1e6, plain.seconds * 1e6, tls.seconds * 1e6,
             (tls.cpu_seconds - plain.cpu_seconds) * 1e6 / (static_cast<double>(bytes) / (1 << 20)));
  return 0;
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  size_t bytes = 1 << 20;
  double seconds = 2;
  CLI::App app("What TLS costs a message on loopback");
  app.add_option("--bytes", bytes, "of a message")->check(CLI::Range(size_t{1}, size_t{1} << 30));
  app.add_option("--seconds", seconds, "of each measurement")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return medley::bench::Run(bytes, seconds);
}
