// What grun's own options say about a step, apart from the job that it may have to ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/submit/job_request.h"
#include "common/proto/steps.h"

namespace gantry::cli {

enum class StepInput : std::uint8_t { first_task, none };

// launcher: the step is ours, and ends with us. attached: we look on.
enum class StepRole : std::uint8_t { launcher, attached };

// Begins with the request, so that the setters of job options work on it as they are: sizes of the
// step, and outside of a job the whole of what is asked for.
struct StepOptions : JobRequest {
  bool label = false;             // -l
  bool kill_on_bad_exit = false;  // -K
  bool overlap = false;
  bool exact = false;     // cores that no other step has, or wait for them
  bool terminal = false;  // --pty
  proto::StepMpi mpi = proto::StepMpi::none;
  std::optional<JobId> job_id;     // --jobid
  std::string std_out, std_err;    // pattern of a file on the nodes; "" = here
  bool quit_on_interrupt = false;  // the first Ctrl-C ends the step
  StepInput input = StepInput::first_task;
  std::string gpu_bind;     // as parse_gpu_bind() takes it; "" = not said
  bool unbuffered = false;  // output of several tasks as it comes, not in whole lines
  StepRole role = StepRole::launcher;
  Manner manner = Manner::gantry;
  std::optional<std::uint32_t> only_output, only_error;  // of this task; unset: of all
  std::uint32_t patience_s = 0;  // end the others so long after the first task's end; 0 = never
};

}  // namespace gantry::cli
