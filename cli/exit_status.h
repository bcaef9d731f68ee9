// The exit statuses of `medley`. docs/use/cli.md has this table, and tests/docs/exit_status_test.py compares the two.
#pragma once

namespace medley::cli {

inline constexpr int kDone = 0;           // done
inline constexpr int kFailed = 1;         // failed; the message says what failed and what to do
inline constexpr int kNoPlan = 2;         // no plan is possible, or `run` refused the file before it started
inline constexpr int kJobFailed = 3;      // `explain` of a job that failed
inline constexpr int kInterrupted = 130;  // `run` was interrupted
inline constexpr int kWrongUse = 100;     // above: the command line is wrong

}  // namespace medley::cli
