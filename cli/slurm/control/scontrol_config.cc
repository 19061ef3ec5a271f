// scontrol show config, and write config. Keys, order and form are Slurm's. A key is shown if it
// has a true value here: "(null)" and "none" for things that Gantry does not have. Numbers about
// Slurm's internals are left out.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "cli/files.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "cli/slurm/records/slurm_records.h"
#include "common/text/text.h"
#include "config/config.h"

namespace gantry::cli::slurm {
namespace {

using ConfigKeys = std::vector<std::pair<std::string, std::string>>;

// Seconds in a length like "30s", "1m30s" or "2h", as the controller writes its options; 0 if the
// text is no length.
std::int64_t seconds_in(const std::string& text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}};
  double sum = 0;
  const char* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    if (end == at) return 0;
    std::string_view unit(end);
    unit = unit.substr(0, unit.find_first_of("0123456789"));
    double factor = unit.empty() ? 1 : 0;
    for (const auto& [name, one] : kUnits)
      if (unit == name) factor = one;
    if (factor == 0) return 0;
    sum += number * factor;
    at = end + unit.size();
  }
  return static_cast<std::int64_t>(sum);
}

// The controller's replies from which the configuration is made.
struct ConfigTold {
  proto::PingReply ping;
  std::map<std::string, std::string> values;  // options by name; some are shown only to operators
  std::string host, port;

  // An option's value, or `usual` if it is empty or not shown to the asker.
  [[nodiscard]] std::string option(const std::string& name, const std::string& usual) const {
    const auto at = values.find(name);
    return at == values.end() || at->second.empty() ? usual : at->second;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return option(name, "(null)"); }
  [[nodiscard]] std::string controller(const std::string& name, const std::string& usual) const {
    return option("controller." + name, usual);
  }
  [[nodiscard]] std::string seconds(const std::string& name, const std::string& usual) const {
    return fmt::format("{} sec", seconds_in(controller(name, usual)));
  }
  [[nodiscard]] std::string length(const std::string& name, const std::string& usual) const {
    return format_duration_long({seconds_in(controller(name, usual)) * 1'000'000});
  }
  [[nodiscard]] std::string weight(const std::string& name) const {
    return controller("priority_weight_" + name, "0");
  }
  // "[a, b]" as "a,b".
  [[nodiscard]] std::string list(const std::string& name, const std::string& usual) const {
    std::string text = option(name, "");
    std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == ' '; });
    return text.empty() ? usual : text;
  }
};

ConfigKeys keys_a_to_d(const ConfigTold& t) {
  const bool root_jobs = t.option("noded.allow_root_jobs", "false") == "true";
  return {{"AccountingStorageBackupHost", "(null)"},
          {"AccountingStorageEnforce", "associations,limits,qos,safe"},
          {"AccountingStorageHost", t.host},
          {"AccountingStorageExternalHost", "(null)"},
          {"AccountingStorageParameters", "(null)"},
          {"AccountingStoragePort", t.port},
          {"AccountingStorageTRES", "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu"},
          {"AccountingStorageType", "accounting_storage/slurmdbd"},
          {"AccountingStorageUser", "N/A"},
          {"AccountingStoreFlags", "job_comment"},
          {"AcctGatherEnergyType", "acct_gather_energy/none"},
          {"AcctGatherFilesystemType", "acct_gather_filesystem/none"},
          {"AcctGatherInterconnectType", "acct_gather_interconnect/none"},
          {"AcctGatherNodeFreq", "0 sec"},
          {"AcctGatherProfileType", "acct_gather_profile/none"},
          {"AllowSpecResourcesUsage", "No"},
          {"AuthAltTypes", "auth/jwt"},
          {"AuthAltParameters", "(null)"},
          {"AuthInfo", "(null)"},
          {"AuthType", "auth/munge"},
          {"BatchStartTimeout", t.seconds("start_timeout", "60s")},
          {"BcastExclude", "(null)"},
          {"BcastParameters", "(null)"},
          {"BOOT_TIME", shown_time(t.ping.started)},
          {"BurstBufferType", "(null)"},
          {"CliFilterPlugins", "(null)"},
          {"ClusterName", t.ping.cluster},
          {"CommunicationParameters", "(null)"},
          {"CompleteWait", "0 sec"},
          {"CoreSpecPlugin", "core_spec/none"},
          {"CpuFreqDef", "Unknown"},
          {"DebugFlags", "(null)"},
          {"DefMemPerNode", "UNLIMITED"},
          {"DependencyParameters", "(null)"},
          {"DisableRootJobs", root_jobs ? "No" : "Yes"}};
}

ConfigKeys keys_e_to_l(const ConfigTold& t) {
  return {{"EnforcePartLimits", "ALL"},
          {"Epilog", t.path("noded.epilog")},
          {"EpilogMsgTime", "0 usec"},
          {"EpilogSlurmctld", "(null)"},
          {"ExtSensorsType", "ext_sensors/none"},
          {"ExtSensorsFreq", "0 sec"},
          {"FairShareDampeningFactor", "1"},
          {"FederationParameters", "(null)"},
          {"FirstJobId", "1"},
          {"GresTypes", "gpu"},
          {"GpuFreqDef", "(null)"},
          {"HASH_VAL", "Match"},
          {"HealthCheckInterval", "0 sec"},
          {"HealthCheckNodeState", "ANY"},
          {"HealthCheckProgram", "(null)"},
          {"InactiveLimit", "0 sec"},
          {"InteractiveStepOptions", "(null)"},
          {"JobAcctGatherFrequency", "30"},
          {"JobAcctGatherType", "jobacct_gather/cgroup"},
          {"JobAcctGatherParams", "(null)"},
          {"JobCompHost", "(null)"},
          {"JobCompLoc", "(null)"},
          {"JobCompPort", "0"},
          {"JobCompType", "jobcomp/none"},
          {"JobCompUser", "(null)"},
          {"JobContainerType", "job_container/tmpfs"},
          {"JobCredentialPrivateKey", "(null)"},
          {"JobCredentialPublicCertificate", "(null)"},
          {"JobDefaults", "(null)"},
          {"JobFileAppend", "0"},
          {"JobRequeue", "1"},
          {"JobSubmitPlugins", "(null)"},
          {"KillOnBadExit", "0"},
          {"KillWait", t.seconds("kill_wait", "30s")},
          {"LaunchParameters", "(null)"},
          {"LaunchType", "launch/slurm"},
          {"Licenses", t.list("licenses", "(null)")},
          {"LogTimeFormat", "iso8601_ms"}};
}

ConfigKeys keys_m_to_p(const ConfigTold& t) {
  const std::int64_t tasks = std::atoll(t.controller("max_array_tasks", "1000").c_str());
  return {{"MailDomain", "(null)"},
          {"MailProg", t.path("controller.mail_program")},
          {"MaxArraySize", std::to_string(tasks + 1)},
          {"MaxJobCount", t.controller("max_jobs", "10000")},
          {"MaxMemPerNode", "UNLIMITED"},
          {"MaxNodeCount", std::to_string(t.ping.nodes)},
          {"MaxStepCount", t.controller("max_job_steps", "40000")},
          {"MaxTasksPerNode", "512"},
          {"MCSPlugin", "mcs/none"},
          {"MCSParameters", "(null)"},
          {"MessageTimeout", fmt::format("{} sec", kCallTimeout.us / 1'000'000)},
          {"MinJobAge", t.seconds("min_job_age", "300s")},
          {"MpiDefault", "none"},
          {"MpiParams", "(null)"},
          {"NodeFeaturesPlugins", "(null)"},
          {"OverTimeLimit", "0 min"},
          {"PluginDir", "(null)"},
          {"PlugStackConfig", "(null)"},
          {"PowerParameters", "(null)"},
          {"PowerPlugin", "(null)"},
          {"PreemptMode", "REQUEUE"},
          {"PreemptType", "preempt/qos"},
          {"PreemptExemptTime", "00:00:00"},
          {"PrEpParameters", "(null)"},
          {"PrEpPlugins", "prep/script"},
          {"PriorityParameters", "(null)"},
          {"PrioritySiteFactorParameters", "(null)"},
          {"PrioritySiteFactorPlugin", "(null)"},
          {"PriorityDecayHalfLife", t.length("fair_share_half_life", "7d")},
          {"PriorityCalcPeriod", t.length("priority_period", "5m")},
          {"PriorityFavorSmall", "No"},
          {"PriorityFlags", ""},
          {"PriorityMaxAge", t.length("priority_max_age", "7d")},
          {"PriorityUsageResetPeriod", "NONE"},
          {"PriorityType", "priority/multifactor"},
          {"PriorityWeightAge", t.weight("age")},
          {"PriorityWeightAssoc", "0"},
          {"PriorityWeightFairShare", t.weight("fairshare")},
          {"PriorityWeightJobSize", t.weight("job_size")},
          {"PriorityWeightPartition", t.weight("partition")},
          {"PriorityWeightQOS", t.weight("class")},
          {"PriorityWeightTRES", "(null)"},
          {"PrivateData", "jobs,reservations,usage"},
          {"ProctrackType", "proctrack/cgroup"},
          {"Prolog", t.path("noded.prolog")},
          {"PrologSlurmctld", "(null)"},
          {"PrologFlags", "Alloc,Contain"},
          {"PropagatePrioProcess", "0"},
          {"PropagateResourceLimits", "NONE"},
          {"PropagateResourceLimitsExcept", "(null)"}};
}

ConfigKeys keys_r_to_slurmctld(const ConfigTold& t) {
  return {{"RebootProgram", "(null)"},
          {"ReconfigFlags", "KeepPartInfo,KeepPartState"},
          {"RequeueExit", "(null)"},
          {"RequeueExitHold", "(null)"},
          {"ResumeFailProgram", "(null)"},
          {"ResumeProgram", "(null)"},
          {"ResvEpilog", "(null)"},
          {"ResvOverRun", "0 min"},
          {"ResvProlog", "(null)"},
          {"ReturnToService", "2"},
          {"RoutePlugin", "route/default"},
          {"SchedulerParameters", "(null)"},
          {"SchedulerTimeSlice", "30 sec"},
          {"SchedulerType", "sched/backfill"},
          {"ScronParameters", "(null)"},
          {"SelectType", "select/cons_tres"},
          {"SelectTypeParameters", "CR_CORE_MEMORY"},
          {"SlurmUser", "root(0)"},
          {"SlurmctldAddr", "(null)"},
          {"SlurmctldDebug", "info"},
          {"SlurmctldHost[0]", t.host},
          {"SlurmctldLogFile", "(null)"},
          {"SlurmctldPort", t.port},
          {"SlurmctldSyslogDebug", "(null)"},
          {"SlurmctldPrimaryOffProg", "(null)"},
          {"SlurmctldPrimaryOnProg", "(null)"},
          {"SlurmctldTimeout", "120 sec"},
          {"SlurmctldParameters", "enable_user_top"}};
}

ConfigKeys keys_slurmd_to_x(const ConfigTold& t) {
  return {{"SlurmdDebug", "info"},
          {"SlurmdLogFile", "(null)"},
          {"SlurmdParameters", "(null)"},
          {"SlurmdPidFile", "(null)"},
          {"SlurmdPort", t.option("noded.listen_port", "6871")},
          {"SlurmdSpoolDir", t.path("noded.state_dir")},
          {"SlurmdSyslogDebug", "(null)"},
          {"SlurmdTimeout", t.seconds("node_timeout", "30s")},
          {"SlurmdUser", "root(0)"},
          {"SlurmSchedLogFile", "(null)"},
          {"SlurmSchedLogLevel", "0"},
          {"SlurmctldPidFile", "(null)"},
          {"SlurmctldPlugstack", "(null)"},
          {"SLURM_CONF", default_config_path()},
          {"SLURM_VERSION", std::string(kSlurmVersion.substr(6))},
          {"SrunEpilog", "(null)"},
          {"SrunPortRange", "0-0"},
          {"SrunProlog", "(null)"},
          {"StateSaveLocation", t.path("controller.state_dir")},
          {"SuspendExcNodes", "(null)"},
          {"SuspendExcParts", "(null)"},
          {"SuspendProgram", "(null)"},
          {"SuspendTime", "INFINITE"},
          {"SwitchParameters", "(null)"},
          {"SwitchType", "switch/none"},
          {"TaskEpilog", "(null)"},
          {"TaskPlugin", "task/affinity,task/cgroup"},
          {"TaskPluginParam", "(null)"},
          {"TaskProlog", "(null)"},
          {"TmpFS", "/tmp"},
          {"TopologyParam", "(null)"},
          {"TopologyPlugin", "topology/none"},
          {"TrackWCKey", "No"},
          {"UsePam", "No"},
          {"UnkillableStepProgram", "(null)"},
          {"UnkillableStepTimeout", "60 sec"},
          {"VSizeFactor", "0 percent"},
          {"WaitTime", "0 sec"},
          {"X11Parameters", "(null)"}};
}

ConfigKeys all_config_keys(const ConfigTold& told) {
  ConfigKeys out;
  for (const auto& part :
       {keys_a_to_d, keys_e_to_l, keys_m_to_p, keys_r_to_slurmctld, keys_slurmd_to_x})
    for (auto& key : part(told)) out.push_back(std::move(key));
  return out;
}

// Cgroups confine jobs in containers to their cores, memory and devices, but not other jobs.
ConfigKeys cgroup_keys(const ConfigTold& told) {
  if (told.option("noded.runtimes", "[crun, runc]").find("process") != std::string::npos) return {};
  return {{"AllowedRAMSpace", "100.0%"}, {"AllowedSwapSpace", "0.0%"},
          {"ConstrainCores", "yes"},     {"ConstrainDevices", "yes"},
          {"ConstrainRAMSpace", "yes"},  {"ConstrainSwapSpace", "yes"}};
}

Result<ConfigTold> ask_about_it(const Control& c) {
  ASSIGN(session, Session::open(c.program));
  ASSIGN(ping, session->call<proto::PingReply>(proto::Ping{}));
  auto config = session->call<proto::ShowConfigReply>(proto::ShowConfig{});
  ConfigTold told{std::move(*ping), {}, {}, {}};
  if (config) told.values = std::move(config->values);
  const std::string& address = session->config().address;
  const std::size_t begin = address.find("//") == std::string::npos ? 0 : address.find("//") + 2;
  const std::size_t colon = std::min(address.rfind(':'), address.size());
  told.host = address.substr(begin, colon - begin);
  told.port = colon < address.size() ? address.substr(colon + 1) : std::string();
  return told;
}

std::string config_line(const std::pair<std::string, std::string>& key) {
  return fmt::format("{:<23} = {}\n", key.first, key.second);
}

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// A value as the controller shows it; "[a, b]" is a list.
std::string yaml_value(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return yaml_quoted(text);
  std::string_view rest = std::string_view(text).substr(1, text.size() - 2);
  std::string out;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    out += (out.empty() ? "" : ", ") + yaml_quoted(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return "[" + out + "]";
}

}  // namespace

int show_config(const Control& c, const std::string& word) {
  const auto told = ask_about_it(c);
  if (!told) return control_error("slurm_load_ctl_conf error", told.error());
  if (word.empty()) fmt::print("Configuration data as of {}\n", shown_time(told->ping.now));
  for (const auto& key : all_config_keys(*told))
    if (word.empty() || lower_case(key.first) == lower_case(word))
      fmt::print("{}", config_line(key));
  if (!word.empty()) return 0;
  const ConfigKeys cgroups = cgroup_keys(*told);
  if (!cgroups.empty()) fmt::print("\nCgroup Support Configuration:\n");
  for (const auto& key : cgroups) fmt::print("{}", config_line(key));
  fmt::print("\nSlurmctld(primary) at {} is UP\n", told->host);
  return 0;
}

namespace {

// gantry.yaml as in force, from the options' dotted names: nodes.n1.cpus and so on. "" without the
// nodes, which only operators see.
std::string gantry_yaml(const std::map<std::string, std::string>& values) {
  static constexpr std::string_view kSections[] = {"controller", "noded", "nodes", "partitions"};
  std::string top;
  std::map<std::string_view, std::string> sections;
  std::string last;  // the node or partition of the previous line
  for (const auto& [name, value] : values) {
    if (value.empty()) continue;  // an empty value means the same as none
    const std::string_view section = std::string_view(name).substr(0, name.find('.'));
    if (std::find(std::begin(kSections), std::end(kSections), section) == std::end(kSections)) {
      top += fmt::format("{}: {}\n", name, yaml_value(value));
      continue;
    }
    const bool many = section == "nodes" || section == "partitions";
    const std::size_t dot = name.rfind('.');
    const std::string of = name.substr(0, dot);
    if (many && of != last) {
      last = of;
      sections[section] += fmt::format("  - name: {}\n", yaml_value(of.substr(section.size() + 1)));
    }
    const std::string option = name.substr(dot + 1);
    if (many && option == "name") continue;
    sections[section] += fmt::format("{}{}: {}\n", many ? "    " : "  ", option, yaml_value(value));
  }
  if (!sections.contains("nodes")) return {};
  for (const std::string_view section : kSections)
    if (const auto at = sections.find(section); at != sections.end())
      top += fmt::format("{}:\n{}", section, at->second);
  return top;
}

}  // namespace

int write_config(const Control& c, const std::string& file) {
  const auto told = ask_about_it(c);
  if (!told) return control_error("slurm_load_ctl_conf error", told.error());
  const std::string text = gantry_yaml(told->values);
  if (text.empty()) {
    fmt::print(
        stderr,
        "scontrol: error: only operators and administrators are told of nodes and partitions "
        "as gantry.yaml has them\n");
    return 1;
  }
  const char* named = std::getenv("SLURM_CONF_OUT");
  const std::string base = !file.empty() ? file : named != nullptr ? named : default_config_path();
  const std::string path = fmt::format("{}.{}", base, shown_time(told->ping.now));
  if (const auto written = write_file(path, text, 0644); !written)
    return refused("scontrol: error: {}\n", written.error().message);
  fmt::print("Slurm config saved to {}\n", path);
  return 0;
}

}  // namespace gantry::cli::slurm
