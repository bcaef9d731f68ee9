// A minimal process node for a test that kills it: a supervised process with a child, and its record.
// Usage: node_test_life FOLDER. Creates FOLDER/started when both processes run, then waits to be killed.
#include <cstdio>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "localcluster/node/process_records.h"
#include "localcluster/node/supervisor.h"

int main(int argc, char** argv) {
  namespace localcluster = medley::localcluster;
  namespace base = medley::base;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  base::SystemClock clock;
  localcluster::Supervisor supervisor(clock);
  if (!supervisor.Start().ok()) return 3;
  localcluster::SpawnSpec spec{"/bin/sh",
                               {"sh", "-c", "sleep 1000 & echo $$ $!; wait"},
                               {"PATH=/usr/bin:/bin", "MEDLEY_CONTAINER_ID=inner"},
                               folder.string()};
  const auto process = supervisor.Run({spec, folder / "inner" / "0.log", 1 << 20, nullptr});
  if (!process.ok()) return 4;
  if (!localcluster::ProcessRecords(folder / "records").Write("inner", (*process)->pid()).ok()) return 5;
  const auto said = [&] {
    return base::ReadFile(folder / "inner" / "0.log").value_or("").find('\n') != std::string::npos;
  };
  while (!said()) clock.SleepFor(base::milliseconds(5), {});
  if (!base::WriteFileAtomic(folder / "started", "").ok()) return 6;
  clock.SleepFor(base::seconds(600), {});
  return 7;
}
