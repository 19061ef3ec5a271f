// One shim: its order, its node's setup, its reports to noded and its records.
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
  std::string dir;  // the job's directory
  Fd dir_fd;
  std::optional<StepId> step;
  bool fenced = false;  // the time that it may run without the controller has passed; see fence.h
};

// Sends a datagram to noded. It does no harm if nobody listens.
void notify(const Shim& shim, NoteKind kind);
// Writes exit.msgpack durably. If the disk is full it retries for a while, because losing an exit
// status is worse than a shim that stays longer.
void write_exit_record(const Shim& shim, int dir_fd, const ExitRecord& record);
// "node n1: TEXT"
std::string on_node(const Shim& shim, const std::string& text);

int run_job(Shim& shim, Signals& signals);
int run_step(Shim& shim, StepId step, Signals& signals);

}  // namespace gantry::runtime
