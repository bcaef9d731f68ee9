#include "cli/run/hopeless.h"

#include <gtest/gtest.h>

namespace medley::cli {
namespace {

Snapshot Refused(const std::string& reason) {
  Snapshot view;
  view.refusal = reason;
  view.problem = reason.empty() ? "" : reason + ": because";
  return view;
}

TEST(HopelessTest, AJobThatIsWrongAsItIsWrittenEndsTheRunAtOnce) {
  for (const char* reason : {"InvalidSpec", "InvalidModel", "UnknownPlanner"}) {
    HopelessWatch watch;
    EXPECT_EQ(watch.Look(Refused(reason), 1), std::string(reason) + ": because");
  }
}

TEST(HopelessTest, AnInfeasibleJobEndsItIfItStays) {
  HopelessWatch watch;
  EXPECT_EQ(watch.Look(Refused(""), 1), "");
  EXPECT_EQ(watch.Look(Refused("Infeasible"), 2), "");
  EXPECT_EQ(watch.Look(Refused("Infeasible"), 6.9), "");
  EXPECT_EQ(watch.Look(Refused("Infeasible"), 7), "Infeasible: because");
}

// On a busy machine the operator's watch of pools was behind that of jobs, and the run ended for pools that existed.
TEST(HopelessTest, PoolsThatTheOperatorSeesLaterThanTheJobDoNotEndTheRun) {
  HopelessWatch watch;
  EXPECT_EQ(watch.Look(Refused("PoolNotFound"), 1), "");
  EXPECT_EQ(watch.Look(Refused(""), 1.2), "");
  EXPECT_EQ(watch.Look(Refused("PoolNotFound"), 2), "");
  EXPECT_EQ(watch.Look(Refused("PoolNotFound"), 7), "PoolNotFound: because") << "they do not exist";
}

TEST(HopelessTest, WhatChangesOrPassesIsNotHopeless) {
  HopelessWatch watch;
  EXPECT_EQ(watch.Look(Refused("Infeasible"), 1), "");
  EXPECT_EQ(watch.Look(Refused(""), 5), "");  // it is measured on another pool
  EXPECT_EQ(watch.Look(Refused("Infeasible"), 8), "");
  EXPECT_EQ(watch.Look(Refused("PoolUnpriced"), 12.9), "");
  EXPECT_EQ(watch.Look(Refused("PoolUnpriced"), 17), "");
  EXPECT_EQ(watch.Look(Refused("Queued"), 100), "");
  EXPECT_EQ(watch.Look(Refused("Unschedulable"), 200), "");
}

TEST(HopelessTest, AJobWithAPlanGoesOn) {
  HopelessWatch watch;
  Snapshot view = Refused("InvalidSpec");
  view.plan.emplace();
  EXPECT_EQ(watch.Look(view, 1), "");
}

}  // namespace
}  // namespace medley::cli
