// gctl show: each sub-command shows one kind of thing, in Slurm's record layout or as JSON.
#include <fmt/core.h>

#include <cstdlib>

#include "cli/columns/history_rows.h"
#include "cli/columns/show_records.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_show {
namespace {

struct Show {
  bool oneline = false;
  bool json = false;
  bool script = false;
};

constexpr Option kOneline = flag("oneliner", 'o', "One line for each record", put<&Show::oneline>);
constexpr Option kJson = flag("json", "All fields as JSON", put<&Show::json>);
constexpr Option kJobOptions[] = {
    kOneline,
    kJson,
    flag("script", "Print the batch script instead", put<&Show::script>),
};
constexpr Option kRecordOptions[] = {kOneline, kJson};
constexpr Option kJsonOptions[] = {kJson};

template <class Reply>
bool print_json(const Show& show, const Reply& reply) {
  if (show.json) fmt::print("{}\n", codec::to_json(reply, codec::JsonStyle::pretty));
  return show.json;
}

// Shows a job that the queue no longer has, from accounting.
Result<void> show_ended(Session& session, const Show& show, const proto::JobRef& ref) {
  ASSIGN(ended, ended_jobs(session, ref));
  if (ended->empty()) return tl::unexpected(no_such_job(ref));
  if (show.script)
    return fail(ErrorCode::not_found, fmt::format("{}; its script is not kept any more",
                                                  ended_words(ended->front().row, "")));
  if (show.json) {
    fmt::print("{}\n", codec::to_json(proto::HistoryReply{*ended, false, system_now(), {}, {}},
                                      codec::JsonStyle::pretty));
    return {};
  }
  RecordWriter out(show.oneline, stdout);
  for (const proto::HistoryRow& row : *ended) write_ended_job(out, row, system_now());
  return {};
}

Result<int> run_job(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 1, kAnyOperands);
  ASSIGN(refs, job_refs_of(**operands));
  ASSIGN(session, Session::open(in.program()));
  for (const proto::JobRef& ref : *refs) {
    const auto reply = session->call<proto::ShowJobReply>(proto::ShowJob{ref, show.script});
    const bool gone = reply ? reply->jobs.empty() : reply.error().code == ErrorCode::not_found;
    if (gone) {
      TRY(show_ended(*session, show, ref));
      continue;
    }
    if (!reply) return tl::unexpected(reply.error());
    if (show.script) {
      std::fwrite(reply->jobs[0].script.data(), 1, reply->jobs[0].script.size(), stdout);
      continue;
    }
    if (print_json(show, *reply)) continue;
    RecordWriter out(show.oneline, stdout);
    for (const proto::JobDetail& job : reply->jobs) write_job(out, job, reply->now);
  }
  return 0;
}

Result<int> run_node(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 0, 1);
  proto::ListNodes list;
  if (!(*operands)->empty()) {
    ASSIGN(names, expand_hostlist((*operands)->front()));
    list.nodes = std::move(*names);
  }
  list.gpus = show.json;
  ASSIGN(reply, ask<proto::ListNodesReply>(in.program(), list));
  if (reply->nodes.empty() && !list.nodes.empty())
    return fail(ErrorCode::not_found, fmt::format("Node {} not found", list.nodes[0]));
  if (print_json(show, *reply)) return 0;
  RecordWriter out(show.oneline, stdout);
  for (const proto::NodeRow& node : reply->nodes) write_node(out, node);
  return 0;
}

Result<int> run_partition(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 0, 1);
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(reply, session->call<proto::ListPartitionsReply>(proto::ListPartitions{}));
  ASSIGN(nodes, session->call<proto::ListNodesReply>(proto::ListNodes{}));
  if (!(*operands)->empty()) {
    std::erase_if(reply->partitions,
                  [&](const proto::PartitionRow& p) { return p.name != (*operands)->front(); });
    if (reply->partitions.empty())
      return fail(ErrorCode::not_found,
                  fmt::format("Partition {} not found", (*operands)->front()));
  }
  if (print_json(show, *reply)) return 0;
  RecordWriter out(show.oneline, stdout);
  NodeMembers members(nodes->nodes);
  for (const proto::PartitionRow& partition : reply->partitions)
    write_partition(out, partition, members);
  return 0;
}

Result<int> run_config(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 0, 0);
  ASSIGN(reply, ask<proto::ShowConfigReply>(in.program(), proto::ShowConfig{}));
  if (print_json(show, *reply)) return 0;
  for (const auto& [name, value] : reply->values) fmt::print("{} = {}\n", name, value);
  return 0;
}

Result<int> run_stats(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 0, 0);
  ASSIGN(reply, ask<proto::ShowStatsReply>(in.program(), proto::ShowStats{}));
  if (print_json(show, *reply)) return 0;
  for (const auto& [name, value] : reply->values) fmt::print("{} {}\n", name, value);
  return 0;
}

// ---- host lists: no controller is asked

Result<std::string> host_list_text(const std::vector<std::string>& operands) {
  if (!operands.empty()) return operands[0];
  for (const char* name : {"SLURM_JOB_NODELIST", "GANTRY_JOB_NODELIST"})
    if (const char* list = std::getenv(name); list != nullptr) return std::string(list);
  return fail(ErrorCode::invalid_argument,
              "no host list is given, and SLURM_JOB_NODELIST is not set");
}

Result<int> run_hostnames(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 0, 1);
  ASSIGN(text, host_list_text(**operands));
  ASSIGN(names, expand_hostlist(*text));
  for (const std::string& name : *names) fmt::print("{}\n", name);
  return 0;
}

Result<int> run_hostlist(const Invocation& in) {
  Show show;
  OPERANDS(operands, in, &show, 0, 1);
  ASSIGN(text, host_list_text(**operands));
  ASSIGN(names, expand_hostlist(*text));
  fmt::print("{}\n", compress_hostlist(*names));
  return 0;
}

const Command kJob{{"job", "Everything about jobs", "JOB..."},
                   {.options = kJobOptions,
                    .examples = {{"gctl show job 12", "Everything about job 12, ended or not"},
                                 {"gctl show job --script 12", "The script that was submitted"}},
                    .run = run_job}};
const Command kNode{
    {"node", "Everything about nodes", "[NODES]"},
    {.options = kRecordOptions,
     .examples = {{"gctl show node gpu[01-04]", "Four nodes"},
                  {"gctl show node --json", "All nodes with their GPUs, for programs"}},
     .run = run_node}};
const Command kPartition{
    {"partition", "Everything about partitions", "[PARTITION]"},
    {.options = kRecordOptions,
     .examples = {{"gctl show partition batch", "Limits, nodes and who may use it"}},
     .run = run_partition}};
const Command kShowConfig{{"config", "The controller's options with their values"},
                          {.options = kJsonOptions,
                           .examples = {{"gctl show config", "Every option that is in force"}},
                           .run = run_config}};
const Command kStats{
    {"stats", "Counters of the controller"},
    {.options = kJsonOptions,
     .examples = {{"gctl show stats", "What the controller has counted since it started"}},
     .run = run_stats}};
const Command kHostnames{
    {"hostnames", "The names in a host list, one per line", "[NODES]"},
    {.examples = {{"gctl show hostnames n[01-03]", "n01, n02 and n03, a line each"}},
     .run = run_hostnames}};
const Command kHostlist{
    {"hostlist", "A host list in its shortest form", "[NODES]"},
    {.examples = {{"gctl show hostlist n01,n02,n03", "n[01-03]"}}, .run = run_hostlist}};

constexpr const Command* kSub[] = {&kJob,   &kNode,      &kPartition, &kShowConfig,
                                   &kStats, &kHostnames, &kHostlist};

}  // namespace

const Command kGctlShow{
    {"show", "Show a job, node, partition, the configuration or counters"},
    {.examples = {{"gctl show job 12", "A job"}, {"gctl show node gpu01", "A node"}}, .sub = kSub}};

}  // namespace gantry::cli::gctl_show
