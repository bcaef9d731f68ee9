// Measures the memory that code takes, in a process of its own, so that what ran before does not count.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>

namespace medley::worker {

// Bytes that /proc/self/status has under a name such as "VmHWM:".
inline int64_t OwnMemory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string word; status >> word;) {
    if (word == name) status >> kib;
  }
  return kib << 10;
}

struct ChildMemory {
  int64_t highest = 0;  // the most resident memory of `work`, pages of files included, above that of the beginning
  int64_t kept = 0;     // anonymous memory after `then`, likewise
};

// Runs `work` and `then` in a child. `work` returns whether it succeeded; a test fails otherwise.
inline ChildMemory MemoryInChild(
    const std::function<bool()>& work, const std::function<void()>& then = [] {}) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
    const int64_t resident = OwnMemory("VmHWM:"), anonymous = OwnMemory("RssAnon:");
    ChildMemory memory{-1, -1};
    if (work()) {
      memory.highest = OwnMemory("VmHWM:") - resident;
      then();
      malloc_trim(0);
      memory.kept = OwnMemory("RssAnon:") - anonymous;
    }
    _exit(write(ends[1], &memory, sizeof memory) == sizeof memory ? 0 : 1);
  }
  ChildMemory memory;
  EXPECT_EQ(read(ends[0], &memory, sizeof memory), static_cast<ssize_t>(sizeof memory));
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  EXPECT_GT(memory.highest, 0);
  return memory;
}

}  // namespace medley::worker
