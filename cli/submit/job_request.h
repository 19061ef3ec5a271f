// A job as the user asks for it with gbatch, grun or galloc. The setters of the option tables fill
// it in the order of precedence (script, environment, command line; the later one wins).
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

// Whose words (Gantry's or Slurm's) a command uses in its messages.
enum class Manner : std::uint8_t { gantry, slurm };

// The value of --export: what the environment of the job contains.
struct ExportRule {
  bool all = true;                 // the whole environment of gbatch
  std::vector<std::string> names;  // these variables of the present environment
  std::vector<std::pair<std::string, std::string>> set;  // NAME=VALUE
};

struct JobRequest {
  JobSpec spec;
  ExportRule exported;
  Instant now{};                       // the time that "now+1hour" counts from
  std::optional<std::string> chdir;    // -D, relative to the current directory
  std::optional<std::uint32_t> tasks;  // -n
  std::optional<std::pair<std::uint32_t, std::uint32_t>> nodes;  // -N min-max
  GpuWish gpus;
  std::optional<std::string> wrap;
  // How long grun and galloc wait for their allocation; not set: without limit.
  std::optional<Duration> most_wait;
  bool test_only = false;
  bool parsable = false;
  bool wait = false;
  bool quiet = false;
  bool verbose = false;
};

// Combines what the options say: sizes from nodes, tasks and tasks per node, which options were
// given, the absolute working directory. Refuses options that exclude each other.
Result<void> finish_request(JobRequest& request, std::span<const Given> given);

std::map<std::string, std::string> job_environment(const ExportRule& rule);

}  // namespace gantry::cli
