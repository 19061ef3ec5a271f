// The user's query to sacct: its options, and what they mean together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/slurm/frame.h"
#include "cli/slurm/records/account_fields.h"
#include "cli/slurm/records/history.h"

namespace gantry::cli::slurm {

struct WantedStep {  // -j 12.batch
  proto::JobRef job;
  std::string step;
};

struct SacctQuery {
  proto::QueryHistory history;
  std::vector<WantedStep> steps;
  std::optional<std::string> clusters;
  HistorySieve sieve;  // filters that the controller does not apply
  std::string fields;
  std::string delimiter = "|";
  Units units = Units::usual;
  Instant now{};
  bool all_users = false;
  bool no_header = false;
  bool parsable = false;   // -p: a delimiter at the end as well
  bool parsable2 = false;  // -P
  bool jobs_only = false;  // -X
  bool truncate = false;   // -T
  bool help_format = false;
  bool json = false;
  bool yaml = false;

  proto::JobFilter& filter() { return history.filter; }
};

std::span<const Option> sacct_options();

// Completes the query: its time span, and whose jobs it covers.
void finish_sacct(SacctQuery& q);

}  // namespace gantry::cli::slurm
