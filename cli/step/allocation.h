// An allocation for grun (outside of a job) and for galloc: requested, waited for, and released.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/submit/job_request.h"

namespace gantry::cli {

class Allocation {
 public:
  // Submits the request and waits until it has nodes. If that takes a while, it reports so on
  // standard error. If a signal ends the wait, or the wait lasts longer than `most_wait` of the
  // (first) request, the request is cancelled and the error is unavailable.
  static Result<Allocation> ask(const Invocation& invocation, const JobRequest& request,
                                Session& session);
  // Several parts are submitted as a heterogeneous job; job() and row() then belong to its first
  // component.
  static Result<Allocation> ask(const Invocation& invocation,
                                const std::vector<const JobRequest*>& parts, Session& session);
  [[nodiscard]] JobId job() const { return job_; }
  [[nodiscard]] const proto::JobRow& row() const { return row_; }
  // Releases the nodes. `exit` is the exit status that is recorded for the job.
  void end(Session& session, ExitStatus exit) const;

 private:
  bool say_queued() const;  // always true
  Allocation(std::string program, JobId job) : program_(std::move(program)), job_(job) {}
  std::string program_;
  JobId job_;
  proto::JobRow row_;
};

}  // namespace gantry::cli
