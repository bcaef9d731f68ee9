#include "worker/torchscript/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace medley::worker::torchscript {
namespace {

// Runs in a process of its own, because rights do not come back. Returns the number of the first thing that goes wrong.
int TryEverything() {
  char name[] = "/tmp/x";
  char* const arguments[] = {name, nullptr};
  const auto refused = [](long result) { return result == -1 && errno == EPERM; };
  if (!GiveUpRights({}).ok()) return 1;
  if (!refused(::open("/etc/passwd", O_RDONLY))) return 2;
  if (!refused(::open("/tmp/medley-sandbox", O_CREAT | O_WRONLY, 0600))) return 3;
  if (!refused(::socket(AF_INET, SOCK_STREAM, 0))) return 4;
  if (!refused(::socket(AF_UNIX, SOCK_STREAM, 0))) return 5;
  if (!refused(::fork())) return 6;
  if (!refused(::execve("/bin/true", arguments, nullptr))) return 7;
  if (!refused(::kill(::getppid(), 0))) return 8;
  if (!refused(::unlink("/tmp/x"))) return 9;
  std::vector<double> numbers(1 << 20, 1.5);  // computing still works
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum == 1.5 * (1 << 20) ? 0 : 10;
}

TEST(SandboxTest, NothingButComputingIsLeft) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(TryEverything());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace medley::worker::torchscript
