// An allocation for grun (outside of a job) and galloc: asked for, waited for, given back.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/submit/job_request.h"

namespace gantry::cli {

class Allocation {
 public:
  // Submits and waits until it has nodes, saying so on standard error when it takes a while. A
  // signal that ends the wait gives the request up, as does the first one's most_wait: unavailable.
  static Result<Allocation> ask(const Invocation& invocation, const JobRequest& request,
                                Session& session);
  // A heterogeneous job, if there are several; job() and row() are then its first component's.
  static Result<Allocation> ask(const Invocation& invocation,
                                const std::vector<const JobRequest*>& parts, Session& session);
  [[nodiscard]] JobId job() const { return job_; }
  [[nodiscard]] const proto::JobRow& row() const { return row_; }
  // Gives the nodes back; `exit` is what the job is recorded with.
  void end(Session& session, ExitStatus exit) const;

 private:
  Allocation(std::string program, JobId job) : program_(std::move(program)), job_(job) {}
  std::string program_;
  JobId job_;
  proto::JobRow row_;
};

}  // namespace gantry::cli
