#include "worker/agent/exit_words.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <string_view>

namespace medley::worker {
namespace {

constexpr size_t kMostWords = 1500;  // bytes
constexpr size_t kLastLines = 5;     // without a traceback
constexpr std::string_view kTraceback = "Traceback (most recent call last)";

}  // namespace

std::string HowItEnded(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exited with {}", WEXITSTATUS(wait_status));
  if (!WIFSIGNALED(wait_status)) return fmt::format("ended with the status {}", wait_status);
  const int number = WTERMSIG(wait_status);
  const char* const name = sigabbrev_np(number);
  const std::string words = fmt::format("was killed by SIG{}", name == nullptr ? std::to_string(number) : name);
  return number == SIGKILL ? words + ", perhaps because the unit has too little memory" : words;
}

std::string LastWords(const std::deque<std::string>& lines) {
  size_t first = lines.size() - std::min(lines.size(), kLastLines);
  for (size_t i = lines.size(); i > 0; --i) {
    if (lines[i - 1].find(kTraceback) == std::string::npos) continue;
    first = i - 1;
    break;
  }
  std::string words;
  for (size_t i = first; i < lines.size(); ++i) words += (words.empty() ? "" : "\n") + lines[i];
  // The end of a traceback says what happened.
  if (words.size() > kMostWords) words = "..." + words.substr(words.size() - kMostWords);
  return words;
}

}  // namespace medley::worker
