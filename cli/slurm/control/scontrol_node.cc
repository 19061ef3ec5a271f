// scontrol update NodeName=: states, reasons, features and comments of nodes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "common/proto/use.h"
#include "common/tenancy/use_limits.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using proto::NodeAction;

struct NodeStateWord {
  std::string_view name;
  std::optional<NodeAction> action;  // unset: refused with this reason
  std::string_view why;
};
constexpr NodeStateWord kNodeStates[] = {
    {"DOWN", NodeAction::close, ""},
    {"DRAIN", NodeAction::drain, ""},
    {"IDLE", NodeAction::resume, ""},
    {"RESUME", NodeAction::resume, ""},
    {"UNDRAIN", NodeAction::resume, ""},
    {"CANCEL_REBOOT", std::nullopt, "nodes are never rebooted"},
    {"FAIL", std::nullopt, "use DRAIN"},
    {"FUTURE", std::nullopt, "there are no nodes of the future: gantry.yaml declares nodes"},
    {"NORESP", std::nullopt, "the node daemon's heartbeats say whether a node responds"},
    {"POWER_DOWN_ASAP", std::nullopt, "power is not managed"},
    {"POWER_DOWN_FORCE", std::nullopt, "power is not managed"},
    {"POWER_DOWN", std::nullopt, "power is not managed"},
    {"POWER_UP", std::nullopt, "power is not managed"},
};

struct NodeChange {
  proto::UpdateNodes update;
  std::optional<NodeAction> action;
  bool any = false;  // something besides the name was given
};

int node_word_aborted(const std::string& word, std::string_view why) {
  return refused("Invalid input: {}\nscontrol: {}\nRequest node_word_aborted\n", word, why);
}

int set_node_state(NodeChange& change, const std::string& word, const std::string& value) {
  const std::string wanted = upper_case(value);
  for (const NodeStateWord& state : kNodeStates) {
    if (wanted.empty() || !state.name.starts_with(wanted)) continue;
    if (!state.action) return node_word_aborted(word, state.why);
    change.action = state.action;
    return 0;
  }
  return refused(
      "Invalid input: {}\nRequest node_word_aborted\nValid states are: DOWN, DRAIN, IDLE, "
      "RESUME and "
      "UNDRAIN\n",
      word);
}

int set_node_features(NodeChange& change, const std::string& word, const std::string& value) {
  std::vector<std::string> features = split_list(value);
  std::sort(features.begin(), features.end());
  if (change.update.features && *change.update.features != features)
    return node_word_aborted(word,
                             "the available features of a node are all active: one list is enough");
  change.update.features = std::move(features);
  return 0;
}

// Applies one word; returns 1 if it is refused, after printing that.
int set_node_key(NodeChange& change, const std::string& word) {
  const KeyValue pair = key_value(word);
  if (pair.key.empty())
    return refused("scontrol: error: Invalid input: {}  Request node_word_aborted\n", word);
  const auto is = [&](std::string_view name, std::size_t least) {
    return pair.key.size() >= least && name.starts_with(pair.key);
  };
  if (is("nodename", 1)) {
    auto names = expand_hostlist(pair.value);
    if (!names) return node_word_aborted(word, names.error().message);
    change.update.nodes = std::move(*names);
    return 0;
  }
  change.any = true;
  if (is("state", 1)) return set_node_state(change, word, pair.value);
  if (is("activefeatures", 3) || is("features", 1) || is("availablefeatures", 3))
    return set_node_features(change, word, pair.value);
  if (is("reason", 1)) {
    change.update.reason = pair.value;
    return 0;
  }
  if (is("comment", 2)) {
    change.update.comment = pair.value;
    return 0;
  }
  if (is("weight", 1) && pair.value == "1") return 0;  // the weight of every node
  fmt::print(stderr, "Update of this parameter is not supported: {}\n", word);
  if (is("weight", 1))
    fmt::print(stderr,
               "scontrol: nodes have no weight of their own: tenants' documents say how "
               "jobs are spread\n");
  if (is("gres", 1))
    fmt::print(stderr, "scontrol: what a node has is found, or stands in gantry.yaml\n");
  return refused("Request node_word_aborted\n");
}

}  // namespace

int update_nodes(const Control& c, const Arguments& args) {
  NodeChange change;
  for (const std::string& word : args)
    if (set_node_key(change, word) != 0) return 1;
  if (!change.any) return refused("No changes specified\n");
  const bool owes_reason = change.action == NodeAction::drain || change.action == NodeAction::close;
  if (owes_reason && change.update.reason.empty())
    return refused("You must specify a reason when DOWNING or DRAINING a node. Request denied\n");
  change.update.action = change.action.value_or(NodeAction::keep);
  // Setting only the present weight is no change.
  const bool nothing = !change.action && change.update.reason.empty() && !change.update.features &&
                       !change.update.comment;
  if (nothing) return 0;
  const auto ok = ask<proto::Ok>(c.program, change.update);
  return ok ? 0 : control_error("slurm_update error", ok.error());
}

// scontrol show assoc_mgr: users, associations and QOS with their limits, and what jobs use of them
// now. The form is Slurm's, LIMIT=N(USED), where N stands for no limit.
namespace {

struct AssocWords {
  std::vector<std::string> accounts, users, qos;
  bool show_users = true, show_associations = true, show_qos = true;
};

Result<void> read_flags(const std::string& value, AssocWords& words) {
  words.show_users = words.show_associations = words.show_qos = false;
  for (const std::string& flag : split_list(lower_case(value)))
    if (std::string_view("users").starts_with(flag))
      words.show_users = true;
    else if (std::string_view("associations").starts_with(flag))
      words.show_associations = true;
    else if (std::string_view("qos").starts_with(flag))
      words.show_qos = true;
    else
      return fail(ErrorCode::usage, "invalid flag '" + flag + "', valid are Users, Assoc and QOS");
  return {};
}

Result<AssocWords> read_assoc_words(const Arguments& args) {
  AssocWords out;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const KeyValue word = key_value(args[i]);
    std::vector<std::string>* list = nullptr;
    if (word.key.starts_with("acc")) list = &out.accounts;
    if (word.key.starts_with("user")) list = &out.users;
    if (word.key.starts_with("qos")) list = &out.qos;
    if (list != nullptr) {
      for (std::string& name : split_list(word.value)) list->push_back(std::move(name));
    } else if (word.key.starts_with("flag")) {
      TRY(read_flags(word.value, out));
    } else {
      return fail(ErrorCode::usage, "invalid option:" + args[i]);
    }
  }
  return out;
}

bool meant(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

class AssocRecord {
 public:
  explicit AssocRecord(bool oneline) : oneline_(oneline) {}
  void line(int depth, const std::string& text) {
    if (first_)
      text_ += text;
    else
      text_ += (oneline_ ? std::string(" ")
                         : "\n" + std::string(4u * static_cast<unsigned>(depth), ' ')) +
               text;
    first_ = false;
  }
  void end() {
    fmt::print("{}\n", text_);
    text_.clear();
    first_ = true;
  }

 private:
  bool oneline_, first_ = true;
  std::string text_;
};

const std::string& limit_of(const proto::UseRow& row, const std::string& name) {
  static const std::string kNone;
  const auto it = row.limits.find(name);
  return it == row.limits.end() ? kNone : it->second;
}

std::string counted(const std::string& limit, std::uint64_t used) {
  return fmt::format("{}({})", limit.empty() ? "N" : limit, used);
}

enum class UseOf { held, used, running };

std::string amount_of(const proto::TresUse& use, UseOf of) {
  switch (of) {
    case UseOf::held: return std::to_string(use.held);
    case UseOf::used: return fmt::format("{:.0f}", std::floor(use.used_minutes));
    case UseOf::running: return fmt::format("{:.0f}", std::floor(use.running_minutes));
  }
  return "0";
}

// "cpu=8(2),mem=N(100),node=N(1),billing=N(2)"; memory in MB.
std::string tres_line(const std::string& limit, const std::vector<proto::TresUse>& uses, UseOf of) {
  const auto limits = tenancy::read_tres(limit).value_or(tenancy::TresAmounts{});
  std::set<std::string> more;
  for (const auto& [name, amount] : limits) more.insert(name);
  for (const proto::TresUse& use : uses) more.insert(use.name);
  std::vector<std::string> names{"cpu", "mem", "node", "billing"};
  for (const std::string& name : names) more.erase(name);
  names.insert(names.end(), more.begin(), more.end());
  std::string out;
  for (const std::string& name : names) {
    const auto it = limits.find(name);
    const auto use = std::find_if(uses.begin(), uses.end(),
                                  [&](const proto::TresUse& one) { return one.name == name; });
    out += fmt::format("{}{}={}({})", out.empty() ? "" : ",", name,
                       it == limits.end() ? "N" : std::to_string(it->second),
                       use == uses.end() ? "0" : amount_of(*use, of));
  }
  return out;
}

// In minutes, as scontrol shows it.
std::string wall_minutes_of(const std::string& text) {
  if (text.empty()) return "";
  const auto wall = parse_duration(text);
  return wall && *wall ? std::to_string((*wall)->seconds() / 60) : text;
}

// The limits of a single job, in TRES; mem in MB.
std::string plain_tres(const std::string& limit) {
  std::string out;
  const auto amounts = tenancy::read_tres(limit).value_or(tenancy::TresAmounts{});
  for (const std::string& item : split_list(tenancy::format_tres(amounts))) {
    const std::string name = item.substr(0, item.rfind('='));
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, amounts.at(name));
  }
  return out;
}

void group_lines(AssocRecord& out, const proto::UseRow& row) {
  out.line(1, fmt::format("GrpJobs={} GrpJobsAccrue=N(0)",
                          counted(limit_of(row, "GrpJobs"), row.running)));
  const std::string wall = wall_minutes_of(limit_of(row, "GrpWall"));
  out.line(1, fmt::format("GrpSubmitJobs={} GrpWall={}({:.2f})",
                          counted(limit_of(row, "GrpSubmitJobs"), row.submitted),
                          wall.empty() ? "N" : wall, row.wall_minutes));
  out.line(1, "GrpTRES=" + tres_line(limit_of(row, "GrpTRES"), row.tres, UseOf::held));
  out.line(1, "GrpTRESMins=" + tres_line(limit_of(row, "GrpTRESMins"), row.tres, UseOf::used));
  out.line(
      1, "GrpTRESRunMins=" + tres_line(limit_of(row, "GrpTRESRunMins"), row.tres, UseOf::running));
}

double raw_usage(const proto::UseRow& row) {
  for (const proto::TresUse& use : row.tres)
    if (use.name == "billing") return use.used_minutes * 60;
  return 0;
}

void show_association(AssocRecord& out, const std::string& cluster, const proto::UseRow& row) {
  const std::string& priority = limit_of(row, "Priority");
  out.line(0, fmt::format("ClusterName={} Account={} UserName={} Partition= Priority={} ID={}",
                          cluster, row.account,
                          row.user.empty() ? "" : fmt::format("{}({})", row.user, row.uid.value()),
                          priority.empty() ? "0" : priority, row.id));
  out.line(1, fmt::format("SharesRaw/Norm/Level/Factor={}/0.00/0/0.00", row.shares));
  out.line(1, fmt::format("UsageRaw/Norm/Efctv={:.2f}/0.00/0.00", raw_usage(row)));
  out.line(1, fmt::format("ParentAccount={} Lft=0 DefAssoc=No", row.parent));
  group_lines(out, row);
  out.line(1, fmt::format("MaxJobs={} MaxJobsAccrue= MaxSubmitJobs={} MaxWallPJ={}",
                          limit_of(row, "MaxJobs"), limit_of(row, "MaxSubmitJobs"),
                          wall_minutes_of(limit_of(row, "MaxWallDurationPerJob"))));
  out.line(1, "MaxTRESPJ=" + plain_tres(limit_of(row, "MaxTRESPerJob")));
  out.line(1, "MaxTRESPN=" + plain_tres(limit_of(row, "MaxTRESPerNode")));
  out.line(1, "MaxTRESMinsPJ=" + plain_tres(limit_of(row, "MaxTRESMinsPerJob")));
  out.line(1, "MinPrioThresh=");
  out.end();
}

void part_lines(AssocRecord& out, const proto::UseRow& row, const proto::PartOfUse& part,
                bool user) {
  const std::string jobs = user ? "MaxJobsPerUser" : "MaxJobsPerAccount";
  const std::string submits = user ? "MaxSubmitJobsPerUser" : "MaxSubmitJobsPerAccount";
  const std::string of = user ? "PU" : "PA";
  out.line(2, user ? fmt::format("{}({})", part.name, part.uid.value()) : part.name);
  out.line(3, fmt::format("MaxJobs{0}={1} MaxJobsAccrue{0}=N(0) MaxSubmitJobs{0}={2}", of,
                          counted(limit_of(row, jobs), part.running),
                          counted(limit_of(row, submits), part.submitted)));
  out.line(3, fmt::format("MaxTRES{}={}", of,
                          tres_line(limit_of(row, user ? "MaxTRESPerUser" : "MaxTRESPerAccount"),
                                    part.tres, UseOf::held)));
}

void show_qos_record(AssocRecord& out, const proto::UseRow& row) {
  out.line(0, fmt::format("QOS={}({})", row.qos, row.id));
  out.line(1, fmt::format("UsageRaw={:.6f}", raw_usage(row)));
  group_lines(out, row);
  out.line(1, "MaxWallPJ=" + wall_minutes_of(limit_of(row, "MaxWallDurationPerJob")));
  out.line(1, "MaxTRESPJ=" + plain_tres(limit_of(row, "MaxTRESPerJob")));
  out.line(1, "MaxTRESPN=" + plain_tres(limit_of(row, "MaxTRESPerNode")));
  out.line(1, "MaxTRESMinsPJ=" + plain_tres(limit_of(row, "MaxTRESMinsPerJob")));
  out.line(1, "MinPrioThresh=");
  out.line(1, "MinTRESPJ=" + plain_tres(limit_of(row, "MinTRESPerJob")));
  out.line(1, fmt::format("Priority={}", row.priority));
  out.line(1, "Account Limits");
  if (row.accounts.empty()) out.line(2, "No Accounts");
  for (const proto::PartOfUse& part : row.accounts) part_lines(out, row, part, false);
  out.line(1, "User Limits");
  if (row.users.empty()) out.line(2, "No Users");
  for (const proto::PartOfUse& part : row.users) part_lines(out, row, part, true);
  out.end();
}

void show_users(const std::vector<proto::UseRow>& rows, const AssocWords& words) {
  fmt::print("\nUser Records\n\n");
  std::set<std::string> seen;
  for (const proto::UseRow& row : rows)
    if (!row.user.empty() && meant(words.users, row.user) && seen.insert(row.user).second)
      fmt::print("UserName={}({}) DefAccount={} DefWckey= AdminLevel={}\n", row.user,
                 row.uid.value(), row.account, row.user == "root" ? "Administrator" : "None");
  if (seen.empty()) fmt::print("No users currently cached in Slurm.\n\n");
}

}  // namespace

int show_assoc_mgr(const Control& c, const Arguments& args) {
  const auto words = read_assoc_words(args);
  if (!words) return refused("{}\n", words.error().message);
  const auto reply = ask<proto::UseReply>(c.program, proto::ListUse{});
  if (!reply) return control_error("slurm_load_assoc_mgr_info error", reply.error());
  fmt::print("Current Association Manager state\n");
  if (words->show_users) show_users(reply->rows, *words);
  AssocRecord record(c.oneline);
  if (words->show_associations) {
    fmt::print("\nAssociation Records\n\n");
    bool any = false;
    for (const proto::UseRow& row : reply->rows) {
      if (row.account.empty() || !meant(words->accounts, row.account)) continue;
      if (!meant(words->users, row.user)) continue;
      show_association(record, cluster_name(), row);
      any = true;
    }
    if (!any) fmt::print("No associations currently cached in Slurm.\n\n");
  }
  if (!words->show_qos) return 0;
  fmt::print("\nQOS Records\n\n");
  bool any = false;
  for (const proto::UseRow& row : reply->rows) {
    if (row.qos.empty() || !meant(words->qos, row.qos)) continue;
    show_qos_record(record, row);
    any = true;
  }
  if (!any) fmt::print("No QOS currently cached in Slurm.\n\n");
  return 0;
}

}  // namespace gantry::cli::slurm
