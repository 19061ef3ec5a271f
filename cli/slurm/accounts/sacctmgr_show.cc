#include "cli/slurm/accounts/sacctmgr_show.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/frame.h"
#include "common/proto/cluster.h"
#include "common/proto/reservation.h"
#include "common/proto/tenancy.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

// Prints what a client of Slurm asks about the accounting: the keys of `show config` that are true
// of this cluster, whose controller keeps the accounting itself.
int show_accounting_config(const Entry& cluster) {
  const auto config = find_client_config();
  fmt::print("Configuration data as of {}\n", format_time(system_now()));
  const auto line = [](std::string_view key, std::string_view value) {
    fmt::print("{:<22} = {}\n", key, value);
  };
  line("AccountingStorageHost", cluster.host);
  line("AccountingStoragePort", cluster.port);
  line("AccountingStorageType", "accounting_storage/slurmdbd");
  line("AccountingStorageUser", "N/A");
  line("AuthType", "auth/munge");
  line("ClusterName", cluster.cluster);
  line("SLURM_CONF", config ? config->path : "(null)");
  line("SLURM_VERSION", kSlurmVersion.substr(6));
  line("TrackWCKey", "No");
  // The controller is Slurm's slurmdbd too, and has no configuration of its own for that.
  fmt::print("\nSlurmDBD configuration:\n");
  line("AuthType", "auth/munge");
  line("DbdAddr", cluster.host);
  line("DbdHost", cluster.host);
  line("DbdPort", cluster.port);
  line("SLURMDBD_CONF", config ? config->path : "(null)");
  line("SLURMDBD_VERSION", kSlurmVersion.substr(6));
  return 0;
}

Result<std::vector<Entry>> node_events(const std::string& program, const std::string& cluster) {
  ASSIGN(nodes, ask<proto::ListNodesReply>(program, proto::ListNodes{}));
  std::vector<Entry> out;
  for (const proto::NodeRow& node : nodes->nodes) {
    const bool down = node.health != NodeHealth::up;
    if (!down && node.intent == NodeIntent::open) continue;
    Entry& entry = out.emplace_back();
    entry.cluster = cluster;
    entry.nodes = node.name;
    entry.type = "Node";
    entry.start = shown_time(node.since, "Unknown");
    entry.end = "Unknown";
    entry.state = down ? "DOWN" : "DRAIN";
    entry.reason = node.reason;
    entry.user = node.reason_by;
  }
  return out;
}

Result<std::vector<Entry>> reservation_entries(const std::string& program,
                                               const std::string& cluster) {
  ASSIGN(reply, ask<proto::ListReservationsReply>(program, proto::ListReservations{}));
  std::vector<Entry> out;
  for (const proto::ReservationRow& row : reply->reservations) {
    Entry& entry = out.emplace_back();
    entry.cluster = cluster;
    entry.name = row.name;
    entry.nodes = row.node_list;
    entry.tres = fmt::format("node={}", row.nodes);
    entry.start = shown_time(row.start);
    entry.end = shown_time(row.end);
  }
  return out;
}

Result<std::vector<Entry>> transactions(const std::string& program) {
  ASSIGN(reply, ask<proto::TenancyHistoryReply>(program, proto::TenancyHistory{}));
  std::vector<Entry> out;
  for (const proto::TenancyRevision& revision : reply->revisions)
    for (const proto::DocumentChange& change : revision.changes) {
      Entry& entry = out.emplace_back();
      entry.time = shown_time(revision.at);
      entry.actor = revision.author;
      entry.action = fmt::format("{} {}", enum_name(change.action), change.kind);
      entry.where = fmt::format("name='{}'", change.name);
      entry.name = change.name;
      entry.info = revision.comment;
    }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace gantry::cli::slurm
