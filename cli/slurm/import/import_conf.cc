#include "cli/slurm/import/import_conf.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/files.h"
#include "cli/option.h"
#include "cli/slurm/format.h"
#include "cli/slurm/import/import_nodes.h"
#include "common/text/text.h"
#include "config/config.h"
#include "config/gres.h"

namespace gantry::cli::slurm {
namespace {

constexpr int kMostIncludes = 8;  // depth of files that include each other

// The lines of a file without comments. A line that ends with a backslash is joined with the next.
std::vector<std::pair<std::size_t, std::string>> conf_lines(const std::string& text) {
  std::vector<std::pair<std::size_t, std::string>> out;
  std::size_t number = 0;
  bool continued = false;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') quoted = !quoted;
      if (line[i] == '#' && !quoted && (i == 0 || line[i - 1] != '\\')) line.resize(i);
    }
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.pop_back();
    const bool more = !line.empty() && line.back() == '\\';
    if (more) line.pop_back();
    if (continued)
      out.back().second += " " + line;
    else
      out.emplace_back(number, line);
    continued = more;
  }
  return out;
}

// The words of a line like "NodeName=n[1-2] CPUs=4", split at blanks outside of quotes and
// brackets.
std::vector<std::string> conf_words(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if ((c == ' ' || c == '\t') && !quoted) {
      if (!word.empty()) out.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

Result<void> read_conf_into(const std::string& path, int depth, std::vector<ConfLine>& out) {
  ASSIGN(text, read_small_file(path, kLargeFile));
  if (!*text) return fail(ErrorCode::not_found, fmt::format("there is no {}", path));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const auto& [number, line] : conf_lines(**text)) {
    const std::vector<std::string> words = conf_words(line);
    if (words.empty()) continue;
    ConfLine one;
    one.place = fmt::format("{}:{}", name, number);
    if (lower_case(words[0]) == "include" && words.size() == 2) {
      if (depth == kMostIncludes)
        return fail(ErrorCode::malformed, fmt::format("{}: too many includes", one.place));
      const std::string inner = words[1].starts_with('/') ? words[1] : folder + words[1];
      TRY(read_conf_into(inner, depth + 1, out));
      continue;
    }
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        return fail(ErrorCode::malformed,
                    fmt::format("{}: \"{}\" is not KEY=VALUE", one.place, word));
      one.words.emplace_back(lower_case(word.substr(0, equals)), word.substr(equals + 1));
    }
    out.push_back(std::move(one));
  }
  return {};
}

// A setting whose value Gantry always follows, so its line needs no counterpart.
struct Always {
  std::string_view key;
  std::string_view value;  // prefix of the value, in lower case; "" = any value
};
constexpr Always kAlways[] = {
    {"authtype", "auth/munge"},
    {"credtype", "cred/munge"},
    {"cryptotype", "crypto/munge"},
    {"accountingstoragetype", "accounting_storage/slurmdbd"},
    {"accountingstoragetres", ""},  // accounting records every resource that a job holds
    {"accountingstorageenforce", "associations"},
    {"accountingstorageenforce", "limits"},
    {"accountingstorageenforce", "qos"},
    {"accountingstorageenforce", "safe"},
    {"jobacctgathertype", "jobacct_gather/cgroup"},
    {"grestypes", ""},  // the nodes list their own
    {"inactivelimit", "0"},
    {"jobcomptype", "jobcomp/none"},
    {"mpidefault", "none"},
    {"preempttype", "preempt/none"},
    {"prioritytype", "priority/multifactor"},
    {"proctracktype", "proctrack/cgroup"},
    {"propagateresourcelimits", "none"},
    {"returntoservice", "1"},
    {"returntoservice", "2"},
    {"schedulertype", "sched/backfill"},
    {"selecttype", "select/cons_tres"},
    {"selecttype", "select/cons_res"},
    {"selecttypeparameters", "cr_core"},
    {"selecttypeparameters", "cr_cpu"},
    {"switchtype", "switch/none"},
    {"taskplugin", "task/affinity"},
    {"taskplugin", "task/cgroup"},
    {"waittime", "0"},
};

// Settings of Slurm's own daemons: how they run and connect.
constexpr std::string_view kOfDaemons[] = {"accountingstoragehost",
                                           "accountingstorageport",
                                           "accountingstorageuser",
                                           "jobacctgatherfrequency",
                                           "slurmctlddebug",
                                           "slurmctldlogfile",
                                           "slurmctldpidfile",
                                           "slurmctldport",
                                           "slurmctldtimeout",
                                           "slurmddebug",
                                           "slurmdlogfile",
                                           "slurmdpidfile",
                                           "slurmdport",
                                           "slurmdspooldir",
                                           "slurmduser",
                                           "slurmuser",
                                           "statesavelocation"};

// True if the value is always followed; for a list ("associations,limits"), each word.
bool is_always(const std::string& key, const std::string& value) {
  const std::vector<std::string> words = split_list(value);
  if (words.size() > 1)
    return std::all_of(words.begin(), words.end(),
                       [&](const std::string& word) { return is_always(key, word); });
  return std::any_of(std::begin(kAlways), std::end(kAlways), [&](const Always& one) {
    return one.key == key && lower_case(value).starts_with(one.value);
  });
}

// The value as a time in seconds; most times in slurm.conf are in seconds.
std::optional<std::string> in_seconds(const std::string& value) {
  const auto n = parse_integer("seconds", value, 0, 1'000'000'000);
  return n ? std::optional(fmt::format("{}s", *n)) : std::nullopt;
}
std::optional<std::string> as_number(const std::string& value) {
  const auto n = parse_integer("the number", value, 0, 1'000'000'000);
  return n ? std::optional(std::to_string(*n)) : std::nullopt;
}
std::optional<std::string> as_length(const std::string& value) {
  const auto d = parse_duration(value);
  if (!d || !*d || (*d)->us == 0) return std::nullopt;
  return fmt::format("{}s", (*d)->us / 1'000'000);
}
std::optional<std::string> as_program(const std::string& value) {
  const bool plain = value.starts_with('/') && value.find_first_of("*\n\"'#") == std::string::npos;
  return plain ? std::optional(value) : std::nullopt;
}
std::optional<std::string> as_sendmail(const std::string& value) {
  return value.ends_with("sendmail") ? as_program(value) : std::nullopt;
}

struct ConfSetting {
  std::string_view key, section, ours;
  std::optional<std::string> (*value)(const std::string&);  // nullopt: the setting is left out
};
constexpr ConfSetting kConfSettings[] = {
    {"killwait", "controller", "kill_wait", in_seconds},
    {"minjobage", "controller", "min_job_age", in_seconds},
    {"slurmdtimeout", "controller", "node_timeout", in_seconds},
    {"maxjobcount", "controller", "max_jobs", as_number},
    {"maxarraysize", "controller", "max_array_tasks", as_number},
    {"prioritydecayhalflife", "controller", "fair_share_half_life", as_length},
    {"prioritymaxage", "controller", "priority_max_age", as_length},
    {"prioritycalcperiod", "controller", "priority_period", as_length},
    {"priorityweightage", "controller", "priority_weight_age", as_number},
    {"priorityweightfairshare", "controller", "priority_weight_fairshare", as_number},
    {"priorityweightjobsize", "controller", "priority_weight_job_size", as_number},
    {"priorityweightpartition", "controller", "priority_weight_partition", as_number},
    {"priorityweightqos", "controller", "priority_weight_class", as_number},
    {"mailprog", "controller", "mail_program", as_sendmail},
    {"prolog", "noded", "prolog", as_program},
    {"epilog", "noded", "epilog", as_program},
};

// The host in a word like "ctl1(10.0.0.1)": the address in parentheses, else the name.
std::string controller_host(const std::string& value) {
  const std::size_t open = value.find('(');
  if (open == std::string::npos || value.back() != ')') return value;
  return value.substr(open + 1, value.size() - open - 2);
}

// Turns "matlab:10,fluent" into our list of licenses. A name without a number counts as one.
std::string conf_licenses(const ConfLine& line, const std::string& value,
                          std::vector<std::string>& left_out) {
  std::string out;
  for (std::string one : split_list(value)) {
    const std::string given = one;
    if (one.find(':') == std::string::npos) one += ":1";
    if (const auto good = parse_declared_license(one); good)
      out += fmt::format("{}{}:{}", out.empty() ? "" : ", ", good->name, good->count);
    else
      left_out.push_back(
          fmt::format("{}: licenses={}: {}", line.place, given, good.error().message));
  }
  return out;
}

struct ConfCluster {
  std::string name = "cluster", host, licenses;
  std::map<std::string, std::map<std::string, std::string>> sections;
};

void take_conf_words(const ConfLine& line, ConfCluster& cluster, NodesAndPartitions& places,
                     std::vector<std::string>& left_out) {
  for (const auto& [key, value] : line.words) {
    const auto leave = [&, &word = key, &text = value](std::string_view why) {
      left_out.push_back(fmt::format("{}: {}={}: {}", line.place, word, text, why));
    };
    const auto setting = std::find_if(std::begin(kConfSettings), std::end(kConfSettings),
                                      [&, k = key](const ConfSetting& s) { return s.key == k; });
    if (key == "clustername") {
      cluster.name = lower_case(value);
    } else if (key == "slurmctldhost" || key == "controlmachine" || key == "controladdr") {
      if (!cluster.host.empty() && key == "slurmctldhost")
        leave("there is one controller; its state is on disk");
      else
        cluster.host = controller_host(value);
    } else if (key == "licenses") {
      cluster.licenses = conf_licenses(line, value, left_out);
    } else if (key == "defmempercpu" && parse_integer("", value, 1, INT64_MAX)) {
      places.default_memory_per_cpu = value;
    } else if (setting != std::end(kConfSettings)) {
      const auto ours = setting->value(value);
      if (ours)
        cluster.sections[std::string(setting->section)][std::string(setting->ours)] = *ours;
      else
        leave(
            fmt::format("this value has no counterpart in {}.{}", setting->section, setting->ours));
    } else if (std::find(std::begin(kOfDaemons), std::end(kOfDaemons), key) !=
               std::end(kOfDaemons)) {
      leave("of Slurm's daemons; docs/config.md has what ours take");
    } else if (!is_always(key, value)) {
      leave("has no counterpart");
    }
  }
}

}  // namespace

Result<std::vector<ConfLine>> read_conf(const std::string& path) {
  std::vector<ConfLine> out;
  TRY(read_conf_into(path, 0, out));
  return out;
}

Result<Imported> import_cluster(const std::vector<ConfLine>& slurm,
                                const std::vector<ConfLine>& gres) {
  Imported out;
  ConfCluster cluster;
  NodesAndPartitions places;
  for (const ConfLine& line : slurm) {
    const std::string& kind = line.words.front().first;
    if (kind == "nodename")
      places.take_node(line, out.left_out);
    else if (kind == "partitionname")
      places.take_partition(line, out.left_out);
    else
      take_conf_words(line, cluster, places, out.left_out);
  }
  for (const ConfLine& line : gres) places.take_gres(line, out.left_out);
  std::string& text = out.gantry_yaml;
  text = fmt::format("cluster: {}\n", cluster.name);
  if (!cluster.licenses.empty()) text += fmt::format("licenses: [{}]\n", cluster.licenses);
  if (!cluster.host.empty()) cluster.sections["controller"]["host"] = cluster.host;
  for (const auto& [section, keys] : cluster.sections) {
    text += fmt::format("\n{}:\n", section);
    for (const auto& [key, value] : keys) text += fmt::format("  {}: {}\n", key, value);
  }
  text += places.yaml(out.left_out);
  if (const auto good = parse_config(text, "gantry.yaml"); !good)
    return fail(ErrorCode::malformed,
                fmt::format("what it becomes is refused: {}", good.error().message));
  return out;
}

}  // namespace gantry::cli::slurm
