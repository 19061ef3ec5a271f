// The table of squeue's fields. A field for which Gantry has no data shows the word that Slurm uses
// for no value.
#include "cli/slurm/records/job_fields.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/columns/job_words.h"
#include "cli/columns/show_records.h"
#include "cli/slurm/records/job_json.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using Q = const QueueRow&;
using Text = std::string&;

consteval Column<QueueRow> same(std::string_view name) {
  return job_value<QueueRow>(name);
}

template <std::string AskedTres::*Word>
void put_asked_word(Text o, Q v) {
  text_or(o, spec(v).given.tres.*Word, "N/A");
}

using PutCell = void (*)(Text, Q);
consteval Column<QueueRow> field(char letter, std::string_view name, std::string_view header,
                                 PutCell put) {
  return {letter, name, header, put};
}
// A column that needs the details of the job, for which another request is sent.
consteval Column<QueueRow> asked(char letter, std::string_view name, std::string_view header,
                                 PutCell put) {
  return {letter, name, header, put, true};
}

constexpr Column<QueueRow> kQueueFields[] = {
    same("Account"),
    field(0, "AccrueTime", "ACCRUE_TIME",
          [](Text o, Q v) { o += shown_time(eligible_since(v.row), "N/A"); }),
    field(0, "admin_comment", "ADMIN_COMMENT", [](Text o, Q) { o += "(null)"; }),
    asked(0, "AllocNodes", "ALLOC_NODES",
          [](Text o, Q v) { text_or(o, spec(v).submit_host, "(null)"); }),
    field(0, "AllocSID", "ALLOC_SID", [](Text o, Q) { o += "0"; }),
    same("ArrayJobID"),
    same("ArrayTaskID"),
    field(0, "AssocID", "ASSOC_ID", [](Text o, Q) { o += "0"; }),
    asked(0, "BatchFlag", "BATCH_FLAG",
          [](Text o, Q v) { o += spec(v).kind == JobKind::batch ? "1" : "0"; }),
    same("BatchHost"),
    field(0, "BoardsPerNode", "BOARDS_PER_NODE", [](Text o, Q) { o += "N/A"; }),
    field(0, "BurstBuffer", "BURST_BUFFER", [](Text, Q) {}),
    field(0, "BurstBufferState", "BURST_BUFFER_STATE", [](Text, Q) {}),
    field(0, "Cluster", "CLUSTER", [](Text o, Q v) { o += v.cluster; }),
    field(0, "ClusterFeature", "CLUSTER_FEATURES", [](Text, Q) {}),
    asked('o', "Command", "COMMAND", [](Text o, Q v) { put_command(o, v); }),
    asked('k', "Comment", "COMMENT", [](Text o, Q v) { text_or(o, spec(v).comment, "(null)"); }),
    asked(0, "Container", "CONTAINER", [](Text o, Q v) { o += spec(v).container.image; }),
    asked('O', "Contiguous", "CONTIGUOUS",
          [](Text o, Q v) {
            o += spec(v).shape.node_layout == NodeLayout::next_to_each_other ? "1" : "0";
          }),
    field('I', "Cores", "CORES_PER_SOCKET", [](Text o, Q) { o += "*"; }),
    field('X', "CoreSpec", "CORE_SPEC", [](Text o, Q) { o += "N/A"; }),
    field(0, "CPUFreq", "CPU_FREQ", [](Text o, Q) { o += "N/A"; }),
    asked(0, "cpus-per-task", "CPUS_PER_TASK",
          [](Text o, Q v) { put_number(o, spec(v).shape.cpus_per_task); }),
    asked(0, "cpus-per-tres", "CPUS_PER_TRES", put_asked_word<&AskedTres::cpus>),
    asked(0, "Deadline", "DEADLINE", [](Text o, Q v) { o += shown_time(spec(v).deadline, "N/A"); }),
    field(0, "DelayBoot", "DELAY_BOOT", [](Text o, Q) { o += "0:00"; }),
    asked('E', "Dependency", "DEPENDENCY",
          [](Text o, Q v) { text_or(o, v.detail ? dependency_left(*v.detail) : "", "(null)"); }),
    field(0, "DerivedEC", "DERIVED_EC", [](Text o, Q) { o += "0"; }),
    field(0, "EligibleTime", "ELIGIBLE_TIME",
          [](Text o, Q v) { o += shown_time(eligible_since(v.row), "N/A"); }),
    field('e', "EndTime", "END_TIME",
          [](Text o, Q v) {
            const bool endless = v.row.started && !v.row.ended && !v.row.time_limit;
            o += shown_time(expected_end(v.row), endless ? "NONE" : "N/A");
          }),
    asked('x', "ExcNodes", "EXC_NODES",
          [](Text o, Q v) { o += compress_hostlist(spec(v).shape.excluded_nodes); }),
    field(0, "exit_code", "EXIT_CODE",
          [](Text o, Q v) { put_number(o, static_cast<std::uint64_t>(v.row.exit.code)); }),
    asked('f', "Feature", "FEATURES",
          [](Text o, Q v) { text_or(o, spec(v).shape.constraint, "(null)"); }),
    asked('G', "GroupID", "GROUP", [](Text o, Q v) { put_number(o, detail(v).owner.gid.value()); }),
    asked('g', "GroupName", "GROUP", [](Text o, Q v) { o += group_name(detail(v).owner.gid); }),
    field(0, "HetJobID", "HET_JOB_ID",
          [](Text o, Q v) { o += v.row.het ? std::to_string(v.row.het->leader.value()) : "N/A"; }),
    field(0, "HetJobIDSet", "HET_JOB_ID_SET",
          [](Text o, Q v) { text_or(o, het_id_set(v.row), "N/A"); }),
    field(0, "HetJobOffset", "HET_JOB_OFFSET",
          [](Text o, Q v) { o += v.row.het ? std::to_string(v.row.het->offset) : "N/A"; }),
    field('i', "JobArrayID", "JOBID", [](Text o, Q v) { o += shown_id(v.row); }),
    field('A', "JobID", "JOBID", [](Text o, Q v) { put_number(o, v.row.slurm_id().value()); }),
    field(0, "LastSchedEval", "LAST_SCHED_EVAL", [](Text o, Q) { o += "N/A"; }),
    asked('W', "Licenses", "LICENSES",
          [](Text o, Q v) { text_or(o, to_string(spec(v).shape.licenses), "(null)"); }),
    field(0, "MaxCPUs", "MAX_CPUS", [](Text o, Q) { o += "0"; }),
    asked(0, "MaxNodes", "MAX_NODES",
          [](Text o, Q v) {
            put_number(
                o, spec(v).shape.max_nodes > spec(v).shape.min_nodes ? spec(v).shape.max_nodes : 0);
          }),
    field(0, "MCSLabel", "MCSLABEL", [](Text o, Q) { o += "N/A"; }),
    asked(0, "mem-per-tres", "MEM_PER_TRES", put_asked_word<&AskedTres::memory>),
    asked('c', "MinCpus", "MIN_CPUS",
          [](Text o, Q v) {
            const JobShape& shape = spec(v).shape;
            put_number(o, shape.cores_on_node(shape.tasks_per_node.value_or(1)));
          }),
    asked('m', "MinMemory", "MIN_MEMORY", [](Text o, Q v) { put_memory(o, v); }),
    field(0, "MinTime", "MIN_TIME", [](Text o, Q) { o += "N/A"; }),
    asked('d', "MinTmpDisk", "MIN_TMP_DISK",
          [](Text o, Q v) {
            o += spec(v).shape.scratch_per_node == 0
                     ? "0"
                     : format_memory(spec(v).shape.scratch_per_node);
          }),
    same("Name"),
    asked(0, "Network", "NETWORK",
          [](Text o, Q v) { o += enum_name(spec(v).network.value_or(NetworkMode::loopback)); }),
    asked('y', "Nice", "NICE", [](Text o, Q v) { o += std::to_string(spec(v).nice); }),
    same("NodeList"),
    field(0, "Nodes", "NODELIST", [](Text o, Q v) { o += v.row.node_list; }),
    field(0, "NTPerBoard", "NTASKS_PER_BOARD", [](Text o, Q) { o += "N/A"; }),
    field(0, "NTPerCore", "NTASKS_PER_CORE", [](Text o, Q) { o += "N/A"; }),
    asked(0, "NTPerNode", "NTASKS_PER_NODE",
          [](Text o, Q v) {
            if (spec(v).shape.tasks_per_node)
              put_number(o, *spec(v).shape.tasks_per_node);
            else
              o += "N/A";
          }),
    field(0, "NTPerSocket", "NTASKS_PER_SOCKET", [](Text o, Q) { o += "N/A"; }),
    same("NumCPUs"),
    same("NumNodes"),
    field(0, "NumTasks", "TASKS", [](Text o, Q v) { put_number(o, v.row.tasks); }),
    field(0, "Origin", "ORIGIN", [](Text o, Q) { o += "N/A"; }),
    field(0, "OriginRaw", "ORIGIN_RAW", [](Text o, Q) { o += "0"; }),
    asked('h', "OverSubscribe", "OVER_SUBSCRIBE",
          [](Text o, Q v) {
            o += spec(v).shape.exclusive                           ? "NO"
                 : spec(v).shape.sharing == NodeSharing::same_user ? "USER"
                 : spec(v).given.oversubscribe                     ? "YES"
                                                                   : "OK";
          }),
    same("Partition"),
    field(0, "PendingTime", "PENDING_TIME",
          [](Text o, Q v) {
            put_number(
                o, static_cast<std::uint64_t>(
                       (v.row.started.value_or(std::max(v.now, v.row.submitted)) - v.row.submitted)
                           .seconds()));
          }),
    field(0, "PreemptTime", "PREEMPT_TIME", [](Text o, Q) { o += "N/A"; }),
    field(0, "Prefer", "PREFER", [](Text o, Q) { o += "(null)"; }),
    field('p', "Priority", "PRIORITY",
          [](Text o, Q v) {
            o += fmt::format("{:.14f}", static_cast<double>(shown_priority(v.row)) / 4294967296.0);
          }),
    field('Q', "PriorityLong", "PRIORITY",
          [](Text o, Q v) { o += std::to_string(shown_priority(v.row)); }),
    field(0, "Profile", "PROFILE", [](Text o, Q) { o += "Not set"; }),
    asked('q', "QOS", {}, [](Text o, Q v) { text_or(o, spec(v).priority_class, "normal"); }),
    same("Reason"),
    field('R', "ReasonList", "NODELIST(REASON)",
          [](Text o, Q v) { put_reason_or_nodes(o, v.row); }),
    field(0, "Reboot", "REBOOT", [](Text o, Q) { o += "0"; }),
    asked('n', "ReqNodes", "REQ_NODES",
          [](Text o, Q v) { o += compress_hostlist(spec(v).shape.required_nodes); }),
    field(0, "ReqSwitch", "REQ_SWITCH", [](Text o, Q) { o += "0"; }),
    asked(0, "Requeue", "REQUEUE", [](Text o, Q v) { o += spec(v).requeue ? "1" : "0"; }),
    same("Reservation"),
    field(0, "ResizeTime", "RESIZE_TIME", [](Text o, Q) { o += "N/A"; }),
    field(0, "RestartCnt", "RESTART_COUNT", [](Text o, Q v) { put_number(o, v.row.restarts); }),
    field(0, "ResvPort", "RESV_PORTS", [](Text o, Q) { o += "N/A"; }),
    field('Y', "SchedNodes", "SCHEDNODES", [](Text o, Q) { o += "(null)"; }),
    field('z', "SCT", "S:C:T", [](Text o, Q) { o += "*:*:*"; }),
    field('s', "SelectJobInfo", "SELECT_JOBINFO", [](Text, Q) {}),
    field(0, "SiblingsActive", "SIBLINGS_ACTIVE", [](Text o, Q) { o += "N/A"; }),
    field(0, "SiblingsActiveRaw", "SIBLINGS_ACTIVE_RAW", [](Text o, Q) { o += "0"; }),
    field(0, "SiblingsViable", "SIBLINGS_VIABLE", [](Text o, Q) { o += "N/A"; }),
    field(0, "SiblingsViableRaw", "SIBLINGS_VIABLE_RAW", [](Text o, Q) { o += "0"; }),
    field('H', "Sockets", "SOCKETS_PER_NODE", [](Text o, Q) { o += "*"; }),
    field(0, "SPerBoard", "SOCKETS_PER_BOARD", [](Text o, Q) { o += "N/A"; }),
    field('S', "StartTime", "START_TIME",
          [](Text o, Q v) {
            o += shown_time(v.row.started ? v.row.started : v.row.expected_start, "N/A");
          }),
    same("State"),
    same("StateCompact"),
    asked(0, "STDERR", {},
          [](Text o, Q v) {
            put_file(o, v, spec(v).std_err.empty() ? spec(v).std_out : spec(v).std_err);
          }),
    asked(
        0, "STDIN", {},
        [](Text o, Q v) { put_file(o, v, spec(v).std_in.empty() ? "/dev/null" : spec(v).std_in); }),
    asked(0, "STDOUT", {}, [](Text o, Q v) { put_file(o, v, spec(v).std_out); }),
    field('V', "SubmitTime", "SUBMIT_TIME", [](Text o, Q v) { o += shown_time(v.row.submitted); }),
    field(0, "system_comment", "SYSTEM_COMMENT", [](Text o, Q) { o += "(null)"; }),
    field('J', "Threads", "THREADS_PER_CORE", [](Text o, Q) { o += "*"; }),
    field('L', "TimeLeft", "TIME_LEFT", [](Text o, Q v) { put_time_left(o, v); }),
    same("TimeLimit"),
    same("TimeUsed"),
    asked(0, "tres-alloc", "TRES_ALLOC", [](Text o, Q v) { put_tres(o, v); }),
    asked(0, "tres-bind", "TRES_BIND", put_asked_word<&AskedTres::bind>),
    asked(0, "tres-freq", "TRES_FREQ", put_asked_word<&AskedTres::freq>),
    asked(0, "tres-per-job", "TRES_PER_JOB",
          [](Text o, Q v) {
            o += spec(v).given.gpus ? fmt::format("gres:gpu:{}", v.row.gpus) : "N/A";
          }),
    asked('b', "tres-per-node", "TRES_PER_NODE",
          [](Text o, Q v) { text_or(o, tres_per_node(spec(v)), "N/A"); }),
    // an old name of the same field
    asked(0, "gres", "TRES_PER_NODE",
          [](Text o, Q v) { text_or(o, tres_per_node(spec(v)), "N/A"); }),
    asked(0, "tres-per-socket", "TRES_PER_SOCKET", put_asked_word<&AskedTres::per_socket>),
    asked(0, "tres-per-task", "TRES_PER_TASK", [](Text o, Q v) { put_gpus_per_task(o, v); }),
    same("UserID"),
    same("UserName"),
    asked('w', "WCKey", "WCKEY", [](Text o, Q v) { text_or(o, spec(v).wckey, "(null)"); }),
    asked('Z', "WorkDir", "WORK_DIR", [](Text o, Q v) { o += spec(v).work_dir; }),
};

}  // namespace

std::span<const Column<QueueRow>> queue_fields() {
  return kQueueFields;
}

}  // namespace gantry::cli::slurm
