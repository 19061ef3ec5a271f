// scontrol update NodeName=: states, reasons, features and comments of nodes.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"

namespace gantry::cli::slurm {
namespace {

using proto::NodeAction;

struct NodeStateWord {
  std::string_view name;
  std::optional<NodeAction> action;  // unset: refused, for this reason
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
  bool any = false;  // something besides the name was said
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

// Sets what one word says; returns 1 if it is refused, which is told.
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
  if (is("weight", 1) && pair.value == "1") return 0;  // what every node has
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
  // A weight that is as it was, and nothing else, is no change.
  const bool nothing = !change.action && change.update.reason.empty() && !change.update.features &&
                       !change.update.comment;
  if (nothing) return 0;
  const auto ok = ask<proto::Ok>(c.program, change.update);
  return ok ? 0 : control_error("slurm_update error", ok.error());
}

}  // namespace gantry::cli::slurm
