// One shim: its order, its node's setup, and how it tells noded and posterity.
#pragma once

#include <optional>
#include <string>

#include "common/result.h"
#include "noded/runtime/job_dir.h"
#include "noded/shim/child.h"

namespace gantry::runtime {

struct Shim {
  NodeSetup setup;
  LaunchRequest request;
  std::string dir;  // of the job
  Fd dir_fd;
  std::optional<StepId> step;
  bool fenced = false;  // its time without the controller is over; see fence.h
};

// Datagram to noded; nobody listening is fine.
void notify(const Shim& shim, NoteKind kind);
// exit.msgpack, durable. A disk that is full is retried for a while: losing an exit status is worse
// than a shim that lingers.
void write_exit_record(const Shim& shim, int dir_fd, const ExitRecord& record);
// "node n1: TEXT"
std::string on_node(const Shim& shim, const std::string& text);

int run_job(Shim& shim, Signals& signals);
int run_step(Shim& shim, StepId step, Signals& signals);

}  // namespace gantry::runtime
