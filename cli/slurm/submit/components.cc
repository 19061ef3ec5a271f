#include "cli/slurm/submit/components.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kInherited[] = {
    "account", "acctg-freq", "begin", "chdir",    "comment",     "deadline", "exclude",
    "hold",    "job-name",   "mem",   "nice",     "no-kill",     "priority", "propagate",
    "qos",     "signal",     "time",  "time-min", "reservation", "wckey"};

bool has(const std::vector<Given>& given, std::string_view name) {
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& one) { return one.option->name == name; });
}

bool is_replaced(std::string_view name, const std::vector<Given>& by) {
  return has(by, name) || (name == "mem" && (has(by, "mem-per-cpu") || has(by, "mem-per-gpu")));
}

}  // namespace

void inherit_options(const std::vector<Given>& from, std::vector<Given>& to) {
  std::vector<Given> more;
  for (const Given& one : from) {
    const std::string_view name = one.option->name;
    const bool inherited =
        std::find(std::begin(kInherited), std::end(kInherited), name) != std::end(kInherited);
    if (inherited && !is_replaced(name, to)) more.push_back(one);
  }
  to.insert(to.begin(), more.begin(), more.end());
}

}  // namespace gantry::cli::slurm
