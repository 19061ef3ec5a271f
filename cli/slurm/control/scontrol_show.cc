// scontrol show ENTITY, ping and completing.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_json.h"
#include "cli/slurm/records/node_fields.h"
#include "cli/slurm/records/queue.h"
#include "cli/slurm/records/slurm_records.h"
#include "cli/submit/job_refs.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

std::string host_of_controller(const ClientConfig& config) {
  const std::string& address = config.address;
  const std::size_t begin = address.find("//") == std::string::npos ? 0 : address.find("//") + 2;
  return address.substr(begin, address.rfind(':') - begin);
}

int jobs_error(const Error& error) {
  return control_error("slurm_load_jobs error", error);
}

// With -v a listing begins with its time and its number of records. The time is that of the
// request.
void say_update_time(const Control& c, std::size_t records) {
  if (c.verbose && !c.quiet)
    fmt::print("last_update_time={}, records={}\n", format_time(system_now()), records);
}

// The jobs that a word names, or all jobs of the controller.
Result<std::vector<QueueRow>> jobs_for(Session& session, const std::string& word) {
  QueueQuestion question;
  question.list.filter.states = {"all"};
  question.details = true;
  // As in Slurm, job 0 stands for all jobs, and 0_3 for task 3 of every array.
  if (word == "0") return jobs_for(session, "");
  if (word.starts_with("0_")) {
    auto rows = ask_queue(session, question, cluster_name());
    if (rows)
      std::erase_if(*rows, [&](const QueueRow& row) {
        return !row.row.array_task || std::to_string(*row.row.array_task) != word.substr(2);
      });
    return rows;
  }
  if (!word.empty()) {
    if (!add_job_refs(question.list.filter.jobs, word))
      return fail(ErrorCode::not_found, "there is no job " + word);
    question.one_job = true;
  }
  return ask_queue(session, question, cluster_name());
}

int show_job(const Control& c, const std::string& word) {
  auto session = Session::open(c.program);
  if (!session) return jobs_error(session.error());
  const auto rows = jobs_for(*session, word);
  if (!rows) return jobs_error(rows.error());
  if (c.json || c.yaml) {
    print_document(c.json ? Shape::json : Shape::yaml, "scontrol", {{"jobs", jobs_tree(*rows)}});
    return 0;
  }
  say_update_time(c, rows->size());
  if (rows->empty() && !c.quiet) fmt::print("No jobs in the system\n");
  RecordWriter out(c.oneline, stdout);
  for (const QueueRow& row : *rows)
    if (row.detail) slurm_job(out, *row.detail, row.now, c.details);
  return 0;
}

// Slurm accepts a list of nodes with a comma at its end, as in its own messages.
std::string_view without_last_comma(std::string_view list) {
  while (list.ends_with(',')) list.remove_suffix(1);
  return list;
}

int show_node(const Control& c, const std::string& word) {
  const auto names = expand_hostlist(without_last_comma(word));
  if (!names) {
    fmt::print("Node {} not found\n", word);
    return 1;
  }
  proto::ListNodes list;
  list.gpus = true;
  list.nodes = *names;
  auto reply = ask<proto::ListNodesReply>(c.program, list);
  // At least one of the named nodes does not exist. The command asks for all nodes to see which.
  if (!reply && reply.error().code == ErrorCode::not_found) {
    list.nodes.clear();
    reply = ask<proto::ListNodesReply>(c.program, list);
  }
  if (!reply) return control_error("slurm_load_node error", reply.error());
  // The nodes in the order in which they were asked for; nullptr stands for a node that does not
  // exist.
  std::vector<const proto::NodeRow*> wanted;
  for (const proto::NodeRow& node : reply->nodes)
    if (names->empty()) wanted.push_back(&node);
  for (const std::string& name : *names) {
    const auto at = std::find_if(reply->nodes.begin(), reply->nodes.end(),
                                 [&](const proto::NodeRow& node) { return node.name == name; });
    wanted.push_back(at == reply->nodes.end() ? nullptr : &*at);
  }
  int status = 0;
  if (!c.json && !c.yaml) say_update_time(c, wanted.size());
  Tree nodes = Tree::list();
  RecordWriter out(c.oneline, stdout);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == nullptr) {
      fmt::print("Node {} not found\n", (*names)[i]);
      status = 1;
    } else if (c.json || c.yaml) {
      nodes.add("", node_tree(*wanted[i]));
    } else {
      slurm_node(out, *wanted[i]);
    }
  }
  if (c.json || c.yaml)
    print_document(c.json ? Shape::json : Shape::yaml, "scontrol", {{"nodes", std::move(nodes)}});
  return status;
}

int show_partition(const Control& c, const std::string& word) {
  auto session = Session::open(c.program);
  if (!session) return control_error("slurm_load_partitions error", session.error());
  auto reply = session->call<proto::ListPartitionsReply>(proto::ListPartitions{});
  if (!reply) return control_error("slurm_load_partitions error", reply.error());
  const auto nodes = session->call<proto::ListNodesReply>(proto::ListNodes{});
  if (!nodes) return control_error("slurm_load_node error", nodes.error());
  if (!word.empty())
    std::erase_if(reply->partitions, [&](const auto& p) { return p.name != word; });
  if (reply->partitions.empty() && !word.empty()) {
    fmt::print("Partition {} not found\n", word);
    return 1;
  }
  say_update_time(c, reply->partitions.size());
  RecordWriter out(c.oneline, stdout);
  NodeMembers members(nodes->nodes);
  for (const proto::PartitionRow& p : reply->partitions) slurm_partition(out, p, members);
  return 0;
}

int show_reservation(const Control& c, const std::string& word) {
  auto reply = ask<proto::ListReservationsReply>(c.program, proto::ListReservations{});
  if (!reply) return control_error("slurm_load_reservations error", reply.error());
  if (!word.empty())
    std::erase_if(reply->reservations, [&](const auto& r) { return r.name != word; });
  if (reply->reservations.empty()) {
    if (word.empty())
      fmt::print("No reservations in the system\n");
    else
      fmt::print("Reservation {} not found\n", word);
    return word.empty() ? 0 : 1;
  }
  say_update_time(c, reply->reservations.size());
  RecordWriter out(c.oneline, stdout);
  for (const proto::ReservationRow& row : reply->reservations) slurm_reservation(out, row);
  return 0;
}

int show_step(const Control& c, const std::string& word) {
  proto::QueryHistory query;
  const std::size_t dot = word.find('.');
  if (word.empty())
    query.filter.states = {"RUNNING", "SUSPENDED", "COMPLETING"};
  else if (!add_job_refs(query.filter.jobs, word.substr(0, dot)))
    return jobs_error({ErrorCode::not_found, "there is no job " + word});
  auto session = Session::open(c.program);
  if (!session) return jobs_error(session.error());
  const auto history = ask_history(*session, query);
  if (!history) return jobs_error(history.error());
  RecordWriter out(c.oneline, stdout);
  std::size_t shown = 0;
  for (const proto::HistoryRow& job : history->jobs)
    for (const proto::StepRow& step : job.steps) {
      const bool wanted =
          dot == std::string::npos ? step.running : step.step == word.substr(dot + 1);
      if (!wanted) continue;
      slurm_step(out, job, step);
      ++shown;
    }
  if (shown > 0) return 0;
  if (word.empty()) {
    fmt::print("No job steps in the system\n");
    return 0;
  }
  return refused("slurm_get_job_steps error: Invalid job id specified\n");
}

// The host names in the word, or in SLURM_JOB_NODELIST if there is no word. A path names a file
// that contains host names.
std::optional<std::vector<std::string>> host_names(const std::string& word) {
  std::string text = word;
  if (text.empty()) {
    const char* list = std::getenv("SLURM_JOB_NODELIST");
    if (list == nullptr) {
      fmt::print(stderr, "SLURM_JOB_NODELIST environment variable is not set\n");
      return std::nullopt;
    }
    text = list;
  }
  auto names = expand_hostlist(without_last_comma(text));
  if (names) return *names;
  fmt::print(stderr, "Invalid hostlist: {}\n", text);
  return std::nullopt;
}

int show_hostnames(const Control&, const std::string& word) {
  const auto names = host_names(word);
  if (!names) return 1;
  for (const std::string& name : *names) fmt::print("{}\n", name);
  return 0;
}
int show_hostlist(const Control&, const std::string& word) {
  const auto names = host_names(word);
  if (names) fmt::print("{}\n", compress_hostlist(*names));
  return names ? 0 : 1;
}
int show_hostlistsorted(const Control&, const std::string& word) {
  auto names = host_names(word);
  if (!names) return 1;
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
  fmt::print("{}\n", compress_hostlist(*names));
  return 0;
}
int show_licenses(const Control& c, const std::string& word) {
  const auto reply = ask<proto::ListPartitionsReply>(c.program, proto::ListPartitions{});
  if (!reply) return control_error("slurm_load_licenses error", reply.error());
  bool any = false;
  for (const proto::LicenseRow& one : reply->licenses) {
    if (!word.empty() && one.name != word) continue;
    any = true;
    fmt::print("LicenseName={}{}Total={} Used={} Free={} Reserved=0 Remote={}\n", one.name,
               c.oneline ? " " : "\n    ", one.total, one.used,
               one.total - std::min(one.total, one.used),
               one.name.find('@') == std::string::npos ? "no" : "yes");
  }
  if (any) return 0;
  if (word.empty())
    fmt::print("No licenses configured in Slurm.\n");
  else
    fmt::print("License {} not found\n", word);
  return word.empty() ? 0 : 1;
}
// Which daemons of the cluster belong on this machine, by their names in Slurm.
int show_daemons(const Control& c, const std::string&) {
  std::array<char, 256> name{};
  (void)::gethostname(name.data(), name.size() - 1);
  const std::string here = std::string(name.data()).substr(0, std::string(name.data()).find('.'));
  auto session = Session::open(c.program);
  if (!session) return control_error("slurm_load_node error", session.error());
  const auto nodes = session->call<proto::ListNodesReply>(proto::ListNodes{});
  if (!nodes) return control_error("slurm_load_node error", nodes.error());
  const std::string controller = host_of_controller(session->config());
  const auto is_here = [&](const std::string& host) {
    return host == "localhost" || host.starts_with("127.") || host == "[::1]" ||
           host.substr(0, host.find('.')) == here;
  };
  const bool local = is_here(controller);
  // Several nodes on the controller's own machine are a test cluster.
  const bool node =
      std::any_of(nodes->nodes.begin(), nodes->nodes.end(), [&](const proto::NodeRow& row) {
        const std::string host = row.address.substr(0, row.address.rfind(':'));
        return is_here(row.name) || is_here(host) || (local && host == controller);
      });
  fmt::print("{}{}\n", local ? "slurmctld " : "", node ? "slurmd" : "");
  return 0;
}

int show_topology(const Control&, const std::string&) {
  fmt::print(stderr, "scontrol: error: No topology information available\n");
  return 0;
}

struct Entity {
  std::string_view name;
  std::size_t least;
  int (*show)(const Control&, const std::string&);
};
constexpr Entity kEntities[] = {
    {"jobs", 1, show_job},
    {"jobid", 4, show_job},
    {"nodes", 1, show_node},
    {"partitions", 1, show_partition},
    {"partitionname", 10, show_partition},
    {"config", 3, show_config},
    {"daemons", 1, show_daemons},
    {"hostnames", 5, show_hostnames},
    {"hostlist", 5, show_hostlist},
    {"hostlistsorted", 9, show_hostlistsorted},
    {"reservations", 1, show_reservation},
    {"steps", 2, show_step},
    {"slurmd", 2, control_show_slurmd},
    {"licenses", 1, show_licenses},
    {"topology", 1, show_topology},
};

const Entity* find_entity(std::string_view word) {
  const std::string wanted = lower_case(word);
  const Entity* found = nullptr;
  for (const Entity& entity : kEntities) {
    if (entity.name == wanted) return &entity;
    if (found == nullptr && wanted.size() >= entity.least && entity.name.starts_with(wanted))
      found = &entity;
  }
  return found;
}

}  // namespace

int control_show(const Control& c, const Arguments& args) {
  if (!has_arguments(args, "show")) return 1;
  const KeyValue first = key_value(args[0]);
  const std::string name = first.key.empty() ? first.value : first.key;
  if (name.size() >= 2 && std::string_view("assoc_mgr").starts_with(lower_case(name)))
    return show_assoc_mgr(c, args);
  const Entity* entity = find_entity(name);
  static constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {"aliases", "use show nodes"},
      {"burstbuffer", "there are no burst buffers"},
      {"bbstat", "there are no burst buffers"},
      {"dwstat", "there are no burst buffers"},
      {"federation", "there is one cluster"},
      {"frontend", "there are no front ends"}};
  for (const auto& [kind, why] : kRefused)
    if (entity == nullptr && lower_case(name) == kind)
      return refused("scontrol: error: show {} is not supported: {}\n", kind, why);
  if (entity == nullptr) return refused("invalid entity:{} for keyword:show \n", name);
  if (args.size() > 2 || (args.size() == 2 && !first.key.empty()))
    return refused("too many arguments for keyword:show\n");
  const std::string word = !first.key.empty() ? first.value : args.size() > 1 ? args[1] : "";
  return entity->show(c, word);
}

int control_ping(const Control& c, const Arguments&) {
  std::array<char, 256> here{};
  (void)::gethostname(here.data(), here.size() - 1);
  auto session = Session::open(c.program);
  const auto reply = session ? session->call<proto::PingReply>(proto::Ping{})
                             : Result<proto::PingReply>(tl::unexpected(session.error()));
  std::string host = here.data();
  if (session) host = host_of_controller(session->config());
  fmt::print("Slurmctld(primary) at {} is {}\n", host, reply ? "UP" : "DOWN");
  if (reply) return 0;
  fmt::print(
      "*****************************************\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n"
      "*****************************************\n");
  return 1;
}

int control_completing(const Control& c, const Arguments&) {
  auto session = Session::open(c.program);
  if (!session) return jobs_error(session.error());
  QueueQuestion question;
  question.list.filter.states = {"COMPLETING"};
  const auto rows = ask_queue(*session, question, cluster_name());
  if (!rows) return jobs_error(rows.error());
  for (const QueueRow& row : *rows)
    fmt::print("JobId={} EndTime={} Nodes(COMPLETING)={}\n", row.row.job.value(),
               shown_time(row.row.ended, "Unknown"), row.row.node_list);
  return 0;
}

}  // namespace gantry::cli::slurm
