// A job as it is being asked for by gbatch, grun or galloc. The setters of the option tables fill
// it in the order of precedence (script, environment, command line; the later wins).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/option.h"
#include "cli/submit/gpu_options.h"
#include "common/job/job_spec.h"
#include "common/time/time.h"

namespace gantry::cli {

// In whose words a command speaks.
enum class Manner : std::uint8_t { gantry, slurm };

// What --export says about the environment of the job.
struct ExportRule {
  bool all = true;                                       // everything gbatch itself has
  std::vector<std::string> names;                        // by name, from our environment
  std::vector<std::pair<std::string, std::string>> set;  // NAME=VALUE
};

struct JobRequest {
  JobSpec spec;
  ExportRule exported;
  Instant now{};                       // for "now+1hour"
  std::optional<std::string> chdir;    // -D, relative to the present directory
  std::optional<std::uint32_t> tasks;  // -n
  std::optional<std::pair<std::uint32_t, std::uint32_t>> nodes;  // -N min-max
  GpuWish gpus;
  std::optional<std::string> wrap;
  std::optional<Duration> most_wait;  // of grun and galloc for their allocation; unset: any
  bool test_only = false;
  bool parsable = false;
  bool wait = false;
  bool quiet = false;
  bool verbose = false;
};

// What the options say together: sizes from nodes, tasks and tasks per node, which of them were
// given, the absolute working directory, mutually exclusive options.
Result<void> finish_request(JobRequest& request, std::span<const Given> given);

std::map<std::string, std::string> job_environment(const ExportRule& rule);

}  // namespace gantry::cli
