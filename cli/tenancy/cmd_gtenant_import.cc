// gtenant import --slurm: turns a cluster of Slurm into gantry.yaml and documents of tenants.
#include <fmt/core.h>

#include <algorithm>

#include "cli/files.h"
#include "cli/slurm/accounts/sacctmgr_change.h"
#include "cli/slurm/import/import_conf.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "config/tenancy/write.h"

namespace gantry::cli::gtenant_import {
namespace {

struct ImportOptions {
  std::string slurm_conf, folder;
};

constexpr Option kImportOptions[] = {
    takes("directory", 'd', "DIR",
          "Write gantry.yaml and tenants.yaml there instead of to standard output",
          put<&ImportOptions::folder>),
    takes("slurm", "SLURM.CONF",
          "The cluster's slurm.conf; files that it includes are read as well",
          put<&ImportOptions::slurm_conf>),
};

// Further files; their contents show what they are.
struct OtherFiles {
  std::vector<slurm::ConfLine> gres;
  std::string dump;
};
Result<OtherFiles> read_others(const std::vector<std::string>& paths) {
  OtherFiles out;
  for (const std::string& path : paths) {
    ASSIGN(text, read_small_file(path, kLargeFile));
    if (!*text) return fail(ErrorCode::not_found, fmt::format("there is no {}", path));
    if ((*text)->find("Cluster - ") != std::string::npos) {
      out.dump += **text;
      continue;
    }
    ASSIGN(lines, slurm::read_conf(path));
    const bool gres = std::all_of(lines->begin(), lines->end(), [](const slurm::ConfLine& line) {
      return std::any_of(line.words.begin(), line.words.end(), [](const auto& word) {
        return word.first == "name" || word.first == "autodetect";
      });
    });
    if (!gres)
      return fail(ErrorCode::malformed,
                  fmt::format("{} is neither a gres.conf nor a file of sacctmgr dump", path));
    out.gres.insert(out.gres.end(), lines->begin(), lines->end());
  }
  return out;
}

Result<int> run_import(const Invocation& in) {
  ImportOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  if (options.slurm_conf.empty())
    return fail(ErrorCode::usage, "--slurm=SLURM.CONF is missing: what is to be imported");
  ASSIGN(conf, slurm::read_conf(options.slurm_conf));
  ASSIGN(others, read_others(**operands));
  ASSIGN(cluster, slurm::import_cluster(*conf, others->gres));
  std::vector<std::string> left_out = cluster->left_out;
  slurm::Accounts accounts(proto::TenancyDocuments{});
  TRY(slurm::load_dump(others->dump, accounts, left_out));
  const std::string tenants = tenancy::to_text(accounts.changes().documents);
  if (options.folder.empty()) {
    fmt::print("{}{}{}", cluster->gantry_yaml, tenants.empty() ? "" : "---\n", tenants);
  } else {
    TRY(make_directories(options.folder, kPrivateFolder));
    for (const auto& [name, text] :
         std::initializer_list<std::pair<std::string_view, const std::string*>>{
             {"gantry.yaml", &cluster->gantry_yaml}, {"tenants.yaml", &tenants}}) {
      if (text->empty()) continue;
      const std::string path = fmt::format("{}/{}", options.folder, name);
      TRY(write_file(path, *text, kPrivateFile));
      fmt::print("{}\n", path);
    }
  }
  for (const std::string& line : left_out) fmt::print(stderr, "left out: {}\n", line);
  return 0;
}

}  // namespace

extern const Command kTenantImport;
const Command kTenantImport{
    {"import", "Make a configuration and tenants of Slurm's files", "[GRES.CONF] [DUMP]"},
    {.description =
         "Reads slurm.conf, and if they are named gres.conf and a file of `sacctmgr dump`; writes "
         "gantry.yaml and the tenants' documents. Accounts below root become tenants with their "
         "Grp limits as quota, accounts below these projects, users members. What has no "
         "counterpart is named on standard error with its place. Nothing is sent anywhere.",
     .options = kImportOptions,
     .examples = {{"gtenant import --slurm slurm.conf gres.conf cluster.cfg -d new/",
                   "new/gantry.yaml for the daemons, new/tenants.yaml for gtenant apply"},
                  {"sacctmgr dump research file=cluster.cfg", "How Slurm writes the third file"}},
     .exits = {{"0", "written; what was left out is told on standard error"},
               {"1", "a file cannot be read, or what it becomes would be refused"},
               {"2", "the command line is wrong"}},
     .run = run_import}};

}  // namespace gantry::cli::gtenant_import
