// scontrol create and update of reservations.
#include <fmt/core.h>

#include <algorithm>

#include "cli/local_zone.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "common/proto/job_text.h"
#include "common/proto/reservation.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using proto::MakeReservation;

constexpr std::string_view kAllNodes =
    "ALL";  // all nodes of the named partition, or of the cluster

// "a,b" replaces the list; "+a,-b" (and KEY+=a, KEY-=b) adds to it and removes from it.
void change_names(std::vector<std::string>& list, char how, const std::string& text) {
  const std::vector<std::string> words = split_list(text);
  const bool by_sign = !words.empty() && (words[0][0] == '+' || words[0][0] == '-');
  if (how == '=' && !by_sign) list.clear();
  for (const std::string& word : words) {
    const bool has_sign = word[0] == '+' || word[0] == '-';
    const bool away = has_sign ? word[0] == '-' : how == '-';
    const std::string name = has_sign ? word.substr(1) : word;
    std::erase(list, name);
    if (!away && !name.empty()) list.push_back(name);
  }
}

constexpr std::string_view kPurge = "PURGE_COMP";
constexpr Duration kUsualPurge = minutes(5);

struct RepeatFlag {
  std::string_view flag;
  Recurrence every;
};
constexpr RepeatFlag kRepeatFlags[] = {{"HOURLY", Recurrence::hourly},
                                       {"DAILY", Recurrence::daily},
                                       {"WEEKDAY", Recurrence::weekdays},
                                       {"WEEKEND", Recurrence::weekends},
                                       {"WEEKLY", Recurrence::weekly}};

Result<bool> set_repetition(MakeReservation& make, Recurrence every, bool away) {
  if (away) {
    if (make.every == every) make.every = Recurrence::once;
    return true;
  }
  if (make.every != Recurrence::once && make.every != every)
    return fail(ErrorCode::invalid_argument,
                "a reservation comes again by one of HOURLY, DAILY, WEEKDAY, WEEKEND and WEEKLY");
  make.every = every;
  if (make.zone.empty()) make.zone = local_zone_rule();
  return true;
}

// "PURGE_COMP", or "PURGE_COMP=10:00" with the time for which the reservation may be idle.
Result<bool> set_purge(MakeReservation& make, std::string_view text, bool away) {
  make.purge_after.reset();
  if (away) return true;
  make.purge_after = kUsualPurge;
  if (!text.starts_with('=')) return true;
  ASSIGN(length, parse_duration(text.substr(1)));
  if (!*length) return fail(ErrorCode::invalid_argument, "PURGE_COMP has a time");
  make.purge_after = **length;
  return true;
}

Result<bool> set_flag(MakeReservation& make, const std::string& flag, bool away) {
  using proto::NodeReplacement;
  for (const RepeatFlag& one : kRepeatFlags)
    if (flag == one.flag) return set_repetition(make, one.every, away);
  if (flag.starts_with(kPurge) && (flag.size() == kPurge.size() || flag[kPurge.size()] == '='))
    return set_purge(make, std::string_view(flag).substr(kPurge.size()), away);
  if (flag == "MAINT") {
    make.maintenance = !away;
  } else if (flag == "IGNORE_JOBS") {
    make.ignore_jobs = !away;
  } else if (flag == "REPLACE") {
    make.replacement = away ? NodeReplacement::none : NodeReplacement::used;
  } else if (flag == "REPLACE_DOWN") {
    make.replacement = away ? NodeReplacement::none : NodeReplacement::down;
  } else if (flag == "SKIP" && make.replaces) {
    make.skip = !away;
  } else if (flag == "STATIC_ALLOC") {
    // Nodes stay the ones that were chosen first, unless a flag says otherwise.
    if (!away) make.replacement = NodeReplacement::none;
  } else if (flag != "SPEC_NODES") {  // redundant: only marks that nodes are named
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("there is no flag {} here; flags are MAINT, IGNORE_JOBS, HOURLY, DAILY, "
                    "WEEKDAY, WEEKEND, WEEKLY, REPLACE, REPLACE_DOWN, PURGE_COMP, "
                    "SPEC_NODES, STATIC_ALLOC and, of an update, SKIP",
                    flag));
  }
  return true;
}

// "A,B" replaces the flags; "+A,-B" (and FLAGS+=A, FLAGS-=B) changes them.
Result<bool> change_reservation_flags(MakeReservation& make, char how, const std::string& text) {
  const std::vector<std::string> words = split_list(upper_case(text));
  const bool by_sign = !words.empty() && (words[0][0] == '+' || words[0][0] == '-');
  if (how == '=' && !by_sign) {
    make.maintenance = make.ignore_jobs = false;
    make.every = Recurrence::once;
    make.replacement = proto::NodeReplacement::none;
    make.purge_after.reset();
  }
  for (const std::string& word : words) {
    const bool has_sign = word[0] == '+' || word[0] == '-';
    const bool away = has_sign ? word[0] == '-' : how == '-';
    TRY(set_flag(make, has_sign ? word.substr(1) : word, away));
  }
  return true;
}

Result<bool> set_reservation_time(std::optional<Instant>& out, const std::string& text) {
  ASSIGN(t, parse_time(text, system_now()));
  out = *t;
  return true;
}

// A duration replaces the old one; "+30" and "-30" change it.
Result<bool> set_reservation_length(MakeReservation& make, const std::string& text) {
  const bool relative = text.starts_with('+') || text.starts_with('-');
  ASSIGN(length, parse_duration(relative ? std::string_view(text).substr(1) : text));
  if (!*length) return fail(ErrorCode::invalid_argument, "a reservation has an end");
  if (!relative) {
    make.length = **length;
    make.end.reset();
    return true;
  }
  if (!make.replaces || !make.end)
    return fail(ErrorCode::invalid_argument, "there is no length yet that could change");
  make.end = text[0] == '+' ? *make.end + **length : *make.end - **length;
  return true;
}

Result<bool> set_reservation_nodes(MakeReservation& make, char how, const std::string& text) {
  if (upper_case(text) == "ALL" && how == '=') {
    make.nodes = {std::string(kAllNodes)};
    make.count = 0;
    return true;
  }
  ASSIGN(names, expand_hostlist(text));
  if (how == '=') make.nodes.clear();
  for (const std::string& name : *names) {
    std::erase(make.nodes, name);
    if (how != '-') make.nodes.push_back(name);
  }
  make.count = 0;
  return true;
}

// Returns the whole name of a key. Slurm's scontrol takes a key that is shortened, if it has at
// least `least` letters.
std::string whole_key(const std::string& key) {
  struct Key {
    std::string_view name;
    std::size_t least;
  };
  static constexpr Key kKeys[] = {
      {"reservationname", 1}, {"starttime", 1}, {"endtime", 1},  {"duration", 1}, {"flags", 2},
      {"nodecnt", 5},         {"nodecount", 5}, {"corecnt", 5},  {"nodes", 5},    {"features", 2},
      {"partitionname", 1},   {"users", 1},     {"accounts", 1}, {"comment", 3},
  };
  for (const Key& one : kKeys)
    if (key.size() >= one.least && one.name.starts_with(key)) return std::string(one.name);
  return key;
}

// Returns false if reservations do not have this key here. `how` is '=', '+' or '-'.
Result<bool> set_reservation_key(MakeReservation& make, const std::string& key, char how,
                                 const std::string& value) {
  if (key == "starttime") return set_reservation_time(make.start, value);
  if (key == "endtime") {
    make.length.reset();
    return set_reservation_time(make.end, value);
  }
  if (key == "duration") return set_reservation_length(make, value);
  if (key == "nodes") return set_reservation_nodes(make, how, value);
  if (key == "flags") return change_reservation_flags(make, how, value);
  if (key == "reservationname") {
    make.name = value;
  } else if (key == "nodecnt" || key == "nodecount") {
    ASSIGN(n, parse_integer("NodeCnt", value, 1, 65'536));
    make.count = static_cast<std::uint32_t>(*n);
    make.nodes.clear();
  } else if (key == "users") {
    change_names(make.users, how, value);
  } else if (key == "accounts") {
    change_names(make.tenants, how, value);
  } else if (key == "partitionname") {
    make.partition = value;
  } else if (key == "features") {
    make.constraint = value;
  } else if (key == "comment") {
    make.comment = value;
  } else if (key == "corecnt") {
    return fail(ErrorCode::invalid_argument,
                "nodes are reserved whole here: give NodeCnt or Nodes");
  } else {
    return false;
  }
  return true;
}

// Applies the words; returns 1 if one is refused, after printing that.
int read_reservation_words(MakeReservation& make, const Arguments& args) {
  for (const std::string& arg : args) {
    const std::string word = lower_case(arg);
    if (std::string_view("reservation").starts_with(word) && word.size() >= 3) continue;
    KeyValue pair = key_value(arg);
    char how = '=';
    if (!pair.key.empty() && (pair.key.back() == '+' || pair.key.back() == '-')) {
      how = pair.key.back();
      pair.key.pop_back();
    }
    const auto known = set_reservation_key(make, whole_key(pair.key), how, pair.value);
    if (!known) return key_value_refused(arg, known.error());
    if (!*known) return key_not_supported(arg);
  }
  return 0;
}

// Checks what Slurm's scontrol requires before it sends the request. Returns "" if nothing is
// missing.
std::string_view missing_word(const MakeReservation& make) {
  if (!make.start) return "A start time must be given.";
  if (!make.end && !make.length) return "An end time or duration must be given.";
  if (make.nodes.empty() && make.count == 0)
    return "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.";
  if (make.users.empty() && make.tenants.empty())
    return "Either Users/Groups and/or Accounts must be specified.";
  return "";
}

// Replaces Nodes=ALL by the names; returns 1 if an error was printed.
int name_all_nodes(const Control& c, MakeReservation& make, std::string_view prefix) {
  if (make.nodes != std::vector<std::string>{std::string(kAllNodes)}) return 0;
  proto::ListNodes list;
  if (!make.partition.empty()) list.partitions = {make.partition};
  const auto reply = ask<proto::ListNodesReply>(c.program, list);
  if (!reply) return control_error(prefix, reply.error());
  make.nodes.clear();
  for (const proto::NodeRow& node : reply->nodes) make.nodes.push_back(node.name);
  make.partition.clear();
  return 0;
}

}  // namespace

int create_reservation(const Control& c, const Arguments& args) {
  MakeReservation make;
  if (read_reservation_words(make, args) != 0) return 1;
  // A partition without nodes is the whole partition.
  if (make.nodes.empty() && make.count == 0 && !make.partition.empty())
    make.nodes = {std::string(kAllNodes)};
  if (const std::string_view missing = missing_word(make); !missing.empty())
    return refused("scontrol: error: {}  No reservation created.\n", missing);
  if (name_all_nodes(c, make, "Error creating the reservation") != 0) return 1;
  const auto made = ask<proto::ListReservationsReply>(c.program, make);
  if (!made) return control_error("Error creating the reservation", made.error());
  for (const proto::ReservationRow& row : made->reservations)
    fmt::print("Reservation created: {}\n", row.name);
  return 0;
}

int update_reservation(const Control& c, const Arguments& args) {
  if (args.size() < 2) return refused("scontrol: error: No changes specified\n");
  proto::ListReservations list;
  list.names = {key_value(args[0]).value};
  const auto reply = ask<proto::ListReservationsReply>(c.program, list);
  if (!reply) return control_error("Error updating the reservation", reply.error());
  if (reply->reservations.empty()) return key_not_supported(args[0]);
  const proto::ReservationRow& now = reply->reservations.front();
  MakeReservation make;
  make.replaces = true;
  make.name = now.name;
  if (auto names = expand_hostlist(now.node_list)) make.nodes = std::move(*names);
  make.start = now.start;
  make.end = now.end;
  make.maintenance = now.maintenance;
  make.tenants = now.tenants;
  make.users = now.users;
  make.comment = now.comment;
  make.every = now.every;
  make.zone = now.zone;
  make.replacement = now.replacement;
  make.purge_after = now.purge_after;
  if (read_reservation_words(make, args) != 0) return 1;
  if (make.length && make.end) make.end.reset();
  if (name_all_nodes(c, make, "Error updating the reservation") != 0) return 1;
  const auto made = ask<proto::ListReservationsReply>(c.program, make);
  if (!made) return control_error("Error updating the reservation", made.error());
  fmt::print("Reservation updated.\n");
  return 0;
}

}  // namespace gantry::cli::slurm
