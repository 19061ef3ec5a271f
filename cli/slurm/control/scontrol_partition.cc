// scontrol create, update and delete of partitions: Slurm's keys as options of gantry.yaml.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "common/tenancy/use_limits.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using proto::ChangePartition;

// Each reads a value as Slurm writes it, and returns the value of Gantry's option; an error has
// only the reason.
Result<std::string> wrong_partition_value(std::string why) {
  return fail(ErrorCode::invalid_argument, std::move(why));
}
bool is_no_limit(const std::string& text) {
  const std::string word = upper_case(text);
  return word == "UNLIMITED" || word == "INFINITE" || word == "-1";
}
// "N" and "NO" are no; likewise for yes.
std::optional<bool> partition_yes_or_no(const std::string& text) {
  const std::string word = upper_case(text);
  if (word.empty()) return std::nullopt;
  if (std::string_view("YES").starts_with(word)) return true;
  if (std::string_view("NO").starts_with(word)) return false;
  return std::nullopt;
}

Result<std::string> partition_flag(const std::string& text) {
  const auto value = partition_yes_or_no(text);
  if (!value) return wrong_partition_value("Acceptable values are YES and NO");
  return std::string(*value ? "yes" : "no");
}
Result<std::string> partition_time(const std::string& text) {
  if (is_no_limit(text) || upper_case(text) == "NONE") return std::string("unlimited");
  ASSIGN(length, parse_duration(text));
  if (!*length) return std::string("unlimited");
  return fmt::format("{}s", (*length)->us / 1'000'000);
}
Result<std::string> partition_count(const std::string& text) {
  if (is_no_limit(text)) return std::string("none");
  ASSIGN(n, parse_integer("the number", text, 0, UINT32_MAX));
  return std::to_string(*n);
}
Result<std::string> partition_least(const std::string& text) {
  ASSIGN(n, parse_integer("the number", text, 0, UINT32_MAX));
  return std::to_string(std::max<std::int64_t>(*n, 1));
}
Result<std::string> partition_number(const std::string& text) {
  ASSIGN(n, parse_integer("the number", text, 0, 65'535));
  return std::to_string(*n);
}
Result<std::string> partition_megabytes(const std::string& text) {
  if (is_no_limit(text) || text == "0") return std::string("none");
  ASSIGN(bytes, parse_memory(text));
  return fmt::format("{}M", *bytes >> 20);
}
Result<std::string> partition_list(const std::string& text) {
  return upper_case(text) == "ALL" ? std::string() : text;
}
Result<std::string> partition_nodes(const std::string& text) {
  return upper_case(text) == "ALL" ? std::string("all") : text;
}
Result<std::string> partition_sharing(const std::string& text) {
  const std::string word = upper_case(text);
  if (word == "NO") return std::string("no");
  if (word == "EXCLUSIVE") return std::string("yes");
  return wrong_partition_value(
      "Acceptable OverSubscribe values are NO and EXCLUSIVE: two jobs never have the same core");
}

Result<std::string> partition_qos_name(const std::string& text) {
  return upper_case(text) == "N/A" ? std::string() : text;
}
Result<std::string> partition_weights(const std::string& text) {
  TRY(tenancy::read_billing_weights(text));
  return text;
}

// A key that sets one of Gantry's options.
struct PartitionKey {
  std::string_view name;  // in lower case
  std::size_t least;      // shortest abbreviation, in characters
  std::string_view option;
  Result<std::string> (*read)(const std::string&);
};
// A key without a counterpart. It has a fixed value, and setting that value is no change.
struct FixedPartitionKey {
  std::string_view name;
  std::size_t least;
  std::string_view values;  // the allowed texts, in capital letters, between blanks
  std::string_view why;
};

constexpr PartitionKey kPartitionKeys[] = {
    {"partitionname", 2, "", nullptr},
    {"maxtime", 4, "max_time", partition_time},
    {"defaulttime", 8, "default_time", partition_time},
    {"maxnodes", 4, "max_nodes", partition_count},
    {"minnodes", 2, "min_nodes", partition_least},
    {"default", 7, "default", partition_flag},
    {"rootonly", 3, "admins_only", partition_flag},
    {"reqresv", 3, "reservation_only", partition_flag},
    {"oversubscribe", 5, "exclusive_nodes", partition_sharing},
    {"shared", 2, "exclusive_nodes", partition_sharing},
    {"priority", 3, "priority", partition_number},
    {"priorityjobfactor", 9, "priority", partition_number},
    {"prioritytier", 9, "priority", partition_number},
    {"nodes", 1, "nodes", partition_nodes},
    {"allowgroups", 6, "allow_groups", partition_list},
    {"allowaccounts", 6, "allow_accounts", partition_list},
    {"allowqos", 6, "allow_qos", partition_list},
    {"denyaccounts", 5, "deny_accounts", partition_list},
    {"denyqos", 5, "deny_qos", partition_list},
    {"defmempercpu", 10, "default_memory_per_cpu", partition_megabytes},
    {"qos", 3, "qos", partition_qos_name},
    {"tresbillingweights", 1, "billing_weights", partition_weights},
};
constexpr FixedPartitionKey kFixedPartitionKeys[] = {
    {"allocnodes", 6, " ALL ", "jobs may be submitted from every host"},
    {"alternate", 3, " ", "a job that cannot start in a partition waits there"},
    {"cpubind", 7, " NONE OFF ", "srun and sbatch say how tasks are bound"},
    {"defmempernode", 10, " 0 UNLIMITED ", "memory is counted by core: use DefMemPerCPU"},
    {"disablerootjobs", 1, " NO ", "noded.allow_root_jobs decides for all partitions"},
    {"exclusiveuser", 1, " NO ", "jobs ask for it themselves: --exclusive=user"},
    {"gracetime", 5, " 0 ", "priority classes have it: sacctmgr modify qos"},
    {"hidden", 1, " NO ", "every partition is shown"},
    {"jobdefaults", 4, " ", "jobs say what they need for each GPU"},
    {"lln", 1, " NO ", "a tenant's documents say how jobs are spread"},
    {"maxcpuspernode", 5, " UNLIMITED INFINITE ", "jobs may take all cores of a node"},
    {"maxmempercpu", 10, " 0 UNLIMITED ", "jobs may take all memory of a node"},
    {"maxmempernode", 10, " 0 UNLIMITED ", "jobs may take all memory of a node"},
    {"overtimelimit", 5, " 0 NONE ", "jobs end at their limit"},
    {"preemptmode", 3, " REQUEUE ", "priority classes have it: sacctmgr modify qos"},
};

struct PartitionStateWord {
  std::string_view name;
  bool up, accepts;
};
constexpr PartitionStateWord kPartitionStates[] = {
    {"INACTIVE", false, false}, {"DOWN", false, true}, {"UP", true, true}, {"DRAIN", true, false}};

template <class Row, std::size_t N>
const Row* find_partition_key(const Row (&rows)[N], std::string_view key) {
  for (const Row& row : rows)
    if (key.size() >= row.least && row.name.starts_with(key)) return &row;
  return nullptr;
}

int invalid_partition_word(const std::string& arg, std::string_view why) {
  return refused("scontrol: error: Invalid input: {}\nscontrol: error: {}\n", arg, why);
}

int no_partition_key(const std::string& arg, const FixedPartitionKey* fixed) {
  fmt::print(stderr, "scontrol: error: Update of this parameter is not supported: {}\n", arg);
  if (fixed != nullptr) fmt::print(stderr, "scontrol: error: {}\n", fixed->why);
  return refused("scontrol: error: Request aborted\n");
}

// The changes of a partition from the words.
struct PartitionWords {
  ChangePartition change;
  const PartitionStateWord* state = nullptr;
  std::size_t words = 0;  // besides the name
};

// Applies one word; returns 1 if the word is refused, after printing that.
int add_partition_word(PartitionWords& said, const std::string& arg) {
  const KeyValue pair = key_value(arg);
  if (pair.key.empty())
    return refused("scontrol: error: Invalid input: {}  Request aborted\n", arg);
  if (pair.key.size() >= 2 && std::string_view("state").starts_with(pair.key)) {
    const std::string word = upper_case(pair.value);
    said.state = nullptr;
    for (const PartitionStateWord& state : kPartitionStates)
      if (said.state == nullptr && !word.empty() && state.name.starts_with(word))
        said.state = &state;
    if (said.state == nullptr)
      return invalid_partition_word(arg,
                                    "Acceptable State values are UP, DOWN, DRAIN and INACTIVE");
    ++said.words;
    return 0;
  }
  // The shortest forms are one letter, so supported keys come before unsupported ones.
  const PartitionKey* key = find_partition_key(kPartitionKeys, pair.key);
  const FixedPartitionKey* fixed =
      key == nullptr ? find_partition_key(kFixedPartitionKeys, pair.key) : nullptr;
  if (key == nullptr) {
    const std::string wanted = fmt::format(" {} ", upper_case(pair.value));
    const bool so = fixed != nullptr &&
                    (pair.value.empty() ? fixed->values == " "
                                        : fixed->values.find(wanted) != std::string_view::npos);
    if (!so) return no_partition_key(arg, fixed);
    ++said.words;
    return 0;
  }
  if (key->read == nullptr) {
    said.change.name = pair.value;
    return 0;
  }
  const auto text = key->read(pair.value);
  if (!text) return invalid_partition_word(arg, text.error().message);
  const auto [at, fresh] = said.change.values.try_emplace(std::string(key->option), *text);
  if (!fresh && at->second != *text)
    return invalid_partition_word(
        arg,
        fmt::format("another word says {}={}: here they are one number", key->option, at->second));
  ++said.words;
  return 0;
}

std::optional<PartitionWords> read_partition_words(const Arguments& args) {
  PartitionWords said;
  for (const std::string& arg : args)
    if (add_partition_word(said, arg) != 0) return std::nullopt;
  if (!said.change.name.empty()) return said;
  fmt::print(stderr, "scontrol: error: PartitionName must be given.\n");
  return std::nullopt;
}

void add_partition_state(PartitionWords& said) {
  if (said.state == nullptr) return;
  said.change.values["up"] = said.state->up ? "yes" : "no";
  said.change.values["accepts_jobs"] = said.state->accepts ? "yes" : "no";
}

}  // namespace

int create_partition(const Control& c, const Arguments& args) {
  auto said = read_partition_words(args);
  if (!said) return 1;
  if (lower_case(said->change.name) == "default")
    return refused("scontrol: error: PartitionName cannot be \"DEFAULT\".\n");
  add_partition_state(*said);
  said->change.action = proto::PartitionAction::create;
  const auto ok = ask<proto::Ok>(c.program, said->change);
  return ok ? 0 : control_error("Error creating the partition", ok.error());
}

int update_partition(const Control& c, const Arguments& args) {
  auto said = read_partition_words(args);
  if (!said) return 1;
  if (said->words == 0) return refused("scontrol: error: No changes specified\n");
  ChangePartition& change = said->change;
  Result<proto::Ok> ok = proto::Ok{};
  if (change.values.empty() && said->state != nullptr) {  // what operators may do too
    ok = ask<proto::Ok>(c.program,
                        proto::UpdatePartition{change.name, said->state->up, said->state->accepts});
  } else if (!change.values.empty()) {
    add_partition_state(*said);
    change.action = proto::PartitionAction::update;
    ok = ask<proto::Ok>(c.program, change);
  }
  return ok ? 0 : control_error("slurm_update error", ok.error());
}

int delete_partition(const Control& c, const std::string& name, const std::string& word) {
  ChangePartition change;
  change.name = name;
  change.action = proto::PartitionAction::remove;
  const auto ok = ask<proto::Ok>(c.program, change);
  return ok ? 0 : control_error("delete_partition " + word, ok.error());
}

}  // namespace gantry::cli::slurm
