// The bash completion script. Options come from the tables; names of partitions, nodes and jobs are
// requested from the cluster when an argument needs one.
#include <fmt/core.h>

#include "cli/command.h"

namespace gantry::cli {
namespace {

constexpr std::string_view kHead =
    R"bash(# bash completion of Gantry's commands, made by `gantry completion`.
_gantry_partitions() { ginfo --noheader --format=%R 2>/dev/null; }
_gantry_nodes() { ginfo --Node --noheader --format=%N 2>/dev/null; }
_gantry_tenants() { gtenant list --noheader --format=%n 2>/dev/null; }
# One's own jobs; root sees to those of all. "ended" adds those that ended lately.
_gantry_jobs() {
  local whose=--me; [[ $EUID -eq 0 ]] && whose=
  gqueue $whose ${1:+--states=all} --noheader --format=%i 2>/dev/null | head -n 500
}

# _gantry_words KIND: what can stand as an argument of that kind.
_gantry_words() {
  case "$1" in
    partition) _gantry_partitions ;;
    nodes) _gantry_nodes ;;
    tenant) _gantry_tenants ;;
    kind) echo tenant cohort tier priorityclass flavor nodepool topology pricebook ;;
    job) _gantry_jobs ;;
    ended) _gantry_jobs ended ;;
    state) echo PENDING RUNNING CONFIGURING COMPLETING COMPLETED FAILED CANCELLED TIMEOUT \
                OUT_OF_MEMORY NODE_FAIL all ;;
    user) compgen -u -- "$2" ;;
    signal) echo TERM INT HUP USR1 USR2 KILL STOP CONT ;;
  esac
}

# _gantry_reply KIND CUR
_gantry_reply() {
  case "$1" in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    directory) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    none) COMPREPLY=() ;;
    words:*) mapfile -t COMPREPLY < <(compgen -W "${1#words:}" -- "$2") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$(_gantry_words "$1" "$2")" -- "$2") ;;
  esac
}

_gantry_complete() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
  # bash parts words at "=": --key = value
  if [[ "$cur" == "=" ]]; then cur=""
  elif [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
  local command="${COMP_WORDS[0]##*/}"
  if [[ "$command" == gantry && $COMP_CWORD -gt 1 ]] &&
     declare -F "_gantry_of_${COMP_WORDS[1]}" >/dev/null; then command="${COMP_WORDS[1]}"; fi
  "_gantry_of_$command" "$prev" "$cur"
}
)bash";

// The kind of argument that an option takes, in the words of the script's function _gantry_reply.
std::string_view kind_of(std::string_view value) {
  if (value.starts_with("PARTITION")) return "partition";
  if (value.starts_with("NODE")) return "nodes";
  if (value.starts_with("TENANT")) return "tenant";
  if (value.starts_with("KIND")) return "kind";
  if (value.starts_with("JOB")) return "job";
  if (value.starts_with("STATE")) return "state";
  if (value.starts_with("USER")) return "user";
  if (value.starts_with("SIGNAL")) return "signal";
  if (value.starts_with("DIR")) return "directory";
  if (value.starts_with("FILE") || value.starts_with("SCRIPT")) return "file";
  return "none";
}

std::string option_words(const Command& command) {
  std::string words;
  const auto add = [&](std::span<const Option> options) {
    for (const Option& option : options) {
      if (!option.refused.empty()) continue;
      if (!option.name.empty()) words += fmt::format("--{} ", option.name);
      if (option.letter != 0) words += fmt::format("-{} ", option.letter);
    }
  };
  add(command.options);
  add(common_options());
  words.pop_back();
  return words;
}

// A line like this for each option with an argument: "    --partition|-p) _gantry_reply partition
// "$2"; return ;;".
std::string option_cases(const Command& command) {
  std::string text;
  for (const Option& option : command.options) {
    if (!option.refused.empty() || option.arg == Arg::none) continue;
    if (option.arg == Arg::optional && kind_of(option.value) == "none") continue;
    std::string names;
    if (!option.name.empty()) names = fmt::format("--{}", option.name);
    if (option.letter != 0) names += fmt::format("{}-{}", names.empty() ? "" : "|", option.letter);
    text +=
        fmt::format("    {}) _gantry_reply {} \"$2\"; return ;;\n", names, kind_of(option.value));
  }
  return text;
}

std::string_view operand_kind(const Command& command) {
  std::string_view text = command.operands;
  while (text.starts_with('[')) text.remove_prefix(1);
  return kind_of(text);
}

// The operands of scontrol for completion: which words may follow the previous word.
constexpr std::string_view kScontrolOperands =
    R"bash(  local verbs="show hold release requeue requeuehold suspend resume update create delete"
  verbs+=" ping wait_job notify top write listpids pidinfo completing reconfigure token"
  local things="job node partition config reservation step hostnames hostlist licenses"
  case "${1,,}" in
    show) _gantry_reply "words:$things slurmd daemons" "$2" ;;
    update|create|delete)
      _gantry_reply "words:JobId= NodeName= PartitionName= ReservationName=" "$2" ;;
    job|jobs|jobid) _gantry_reply ended "$2" ;;
    hold|uhold|holdu|release|requeue|requeuehold|suspend|resume|notify|top|wait_job|listpids)
      _gantry_reply job "$2" ;;
    node|nodes|nodename) _gantry_reply nodes "$2" ;;
    partition|partitions|partitionname) _gantry_reply partition "$2" ;;
    scontrol|-*) _gantry_reply "words:$verbs" "$2" ;;
    *) COMPREPLY=() ;;
  esac
)bash";

// Returns the shell code that completes the words after a sub-command's name. Commands that only
// read complete ended jobs as well.
std::string operands_of(const Command& command) {
  if (command.name == "scontrol") return std::string(kScontrolOperands);
  if (command.operands.starts_with("job|node|partition"))
    return "  case \"$1\" in\n"
           "    update) _gantry_reply \"words:job node partition\" \"$2\" ;;\n"
           "    job) _gantry_reply job \"$2\" ;;\n"
           "    node) _gantry_reply nodes \"$2\" ;;\n"
           "    partition) _gantry_reply partition \"$2\" ;;\n"
           "    *) COMPREPLY=() ;;\n  esac\n";
  std::string_view kind = operand_kind(command);
  const bool reads = command.name == "logs" || command.name == "why" || command.name == "job";
  if (kind == "job" && reads) kind = "ended";
  return fmt::format("  _gantry_reply {} \"$2\"\n", kind);
}

std::string body(const Command& command) {
  std::string text;
  if (const std::string cases = option_cases(command); !cases.empty())
    text += "  case \"$1\" in\n" + cases + "  esac\n";
  text +=
      fmt::format("  if [[ \"$2\" == -* ]]; then _gantry_reply \"words:{}\" \"$2\"; return; fi\n",
                  option_words(command));
  return text;
}

// The shell function that completes a command. `name` is "gtenant" or "gtenant_price"; `depth` is
// the index of the first word that this function completes.
std::string function_of(const Command& command, const std::string& name, int depth) {
  std::string text = fmt::format("\n_gantry_of_{}() {{\n", name);
  if (command.sub.empty()) {
    text += body(command) + operands_of(command) + "}\n";
    return text;
  }
  std::string names;
  for (const Command* sub : command.sub)
    names += fmt::format("{}{}", names.empty() ? "" : " ", sub->name);
  text += fmt::format(
      "  local i sub=\n  for ((i = {}; i < COMP_CWORD; i++)); do\n    case \"${{COMP_WORDS[i]}}\" "
      "in\n",
      depth);
  text += "      ";
  for (const Command* sub : command.sub)
    text += fmt::format("{}{}", sub == command.sub.front() ? "" : "|", sub->name);
  text += ") sub=\"${COMP_WORDS[i]}\"; break ;;\n    esac\n  done\n  case \"$sub\" in\n";
  for (const Command* sub : command.sub)
    text += fmt::format("    {}) _gantry_of_{}_{} \"$1\" \"$2\"; return ;;\n", sub->name, name,
                        sub->name);
  text += fmt::format("  esac\n{}  _gantry_reply \"words:{}\" \"$2\"\n}}\n", body(command), names);
  for (const Command* sub : command.sub)
    text += function_of(*sub, fmt::format("{}_{}", name, sub->name), depth + 1);
  return text;
}

}  // namespace

std::string completion_script(std::span<const Command* const> commands) {
  std::string text(kHead);
  std::string names;
  for (const Command* command : commands) {
    text += function_of(*command, std::string(command->name), 1);
    names += fmt::format(" {}", command->name);
  }
  return text + "\ncomplete -F _gantry_complete" + names + "\n";
}

}  // namespace gantry::cli
