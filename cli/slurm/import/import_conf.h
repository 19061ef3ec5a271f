// Converts the configuration of a Slurm cluster: slurm.conf and gres.conf become gantry.yaml.
// Settings without a counterpart are listed with their places. (Accounts and users come from a
// dump: sacctmgr_change.h.)
#pragma once

#include <string>
#include <vector>

#include "common/result.h"

namespace gantry::cli::slurm {

// One "KEY=VALUE ..." line of a file of Slurm, joined with its continuation lines.
struct ConfLine {
  std::string place;                                       // "slurm.conf:12"
  std::vector<std::pair<std::string, std::string>> words;  // keys in lower case
};

// Reads a file: removes comments, joins continued lines and understands quotes. `Include FILE` is
// replaced by the file's lines; its path is relative to the file that names it.
Result<std::vector<ConfLine>> read_conf(const std::string& path);

struct Imported {
  std::string gantry_yaml;            // checked, so the daemons accept it
  std::vector<std::string> left_out;  // "slurm.conf:12: Licenses=matlab:10: there are none"
};
Result<Imported> import_cluster(const std::vector<ConfLine>& slurm,
                                const std::vector<ConfLine>& gres);

}  // namespace gantry::cli::slurm
