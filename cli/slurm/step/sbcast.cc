// sbcast: copies a file to every node of a job. A step of one task on each node receives it.
//
// The step writes to a file beside the destination and renames it when everything has arrived, so
// that a copy is complete or does not exist. It writes inside the job's container, and so can reach
// only what the container sees.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cli/session.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/submit/job_request.h"
#include "common/codec/codec.h"
#include "common/proto/step_attach.h"
#include "common/proto/steps.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

extern char** environ;  // declared by POSIX

namespace gantry::cli::slurm {
namespace {

constexpr std::size_t kFanOut = 8;  // nodes at a time
constexpr std::size_t kMostFanOut = 64;
constexpr std::int64_t kBlock = 8 << 20;  // bytes that are written at a time
constexpr std::int64_t kMostBlock = 1 << 30;

// The receiving script. $1 destination, $2 bytes, $3 mode, $4 1 = replace an existing file, $5 time
// of change or "", $6 name, $7 bytes that are written at a time
constexpr const char* kReceive = R"sh(set -e; umask 077; d=$1
if [ -d "$d" ]; then d=$d/$6; fi
if [ "$4" = 0 ] && [ -e "$d" ]; then echo "sbcast: error: $d: File exists" >&2; exit 17; fi
t=$d.sbcast.$$; trap 'rm -f "$t"' EXIT; dd bs="$7" iflag=fullblock status=none >"$t"
[ "$(wc -c <"$t")" -eq "$2" ] || { echo "sbcast: error: $d: it came in part only" >&2; exit 5; }
chmod "$3" "$t"; [ -z "$5" ] || touch -d "@$5" "$t"; mv -f "$t" "$d")sh";

struct SbcastRequest {
  std::optional<JobId> job;
  std::optional<StepId> step;  // only its nodes
  std::size_t fan_out = kFanOut;
  std::int64_t block = kBlock;
  bool force = false, preserve = false, verbose = false;
};

Result<void> set_sbcast_block(SbcastRequest& r, std::string_view text) {
  const char last = text.empty() ? ' ' : text.back();
  const std::int64_t unit = last == 'k' || last == 'K'   ? 1024
                            : last == 'm' || last == 'M' ? 1 << 20
                                                         : 1;
  if (unit > 1) text.remove_suffix(1);
  ASSIGN(n, parse_integer("the block size", text, 1, kMostBlock / unit));
  r.block = *n * unit;
  return {};
}

Result<void> set_sbcast_job(SbcastRequest& r, std::string_view text) {
  const std::size_t dot = text.find('.');
  ASSIGN(id, parse_integer("the job", text.substr(0, dot), 1, INT64_MAX));
  if (dot != std::string_view::npos) {
    ASSIGN(step, parse_integer("the step", text.substr(dot + 1), 0, UINT32_MAX));
    r.step = StepId(static_cast<std::uint32_t>(*step));
  }
  r.job = JobId(static_cast<std::uint64_t>(*id));
  return {};
}
constexpr Option kSbcastOptions[] = {
    takes("fanout", 'F', "N", "Nodes that are written to at a time, at most 64 (default 8)",
          number<"the fan-out", 1, kMostFanOut, &SbcastRequest::fan_out>)
        .from_env("FANOUT"),
    flag("force", 'f', "Replace what is there", put<&SbcastRequest::force>).from_env("FORCE"),
    takes("jobid", 'j', "JOB[.STEP]",
          "To the nodes of this job, or of a step of it (default: the job around us)",
          call<set_sbcast_job>),
    flag("preserve", 'p', "Keep the time of change; the permissions are kept in any case",
         put<&SbcastRequest::preserve>)
        .from_env("PRESERVE"),
    takes("size", 's', "BYTES",
          "Bytes that a node writes at a time, also with k or m behind (default 8m)",
          call<set_sbcast_block>)
        .from_env("SIZE"),
    flag("verbose", 'v', "Say what is copied how, and which node has it",
         put<&SbcastRequest::verbose>),
    refuses("compress", 'C', "the streams are not compressed"),
    refuses("exclude", "only the file itself is copied"),
    refuses("send-libs", "only the file itself is copied"),
    refuses("timeout", 't', "a copy ends when a node is lost, or with Ctrl-C"),
    refuses("treewidth", "use --fanout"),
};
constexpr std::string_view kSbcastPrefixes[] = {"SBCAST_"};

// The nodes of the surrounding job come from its environment, those of another job from the
// controller.
Result<std::vector<std::string>> sbcast_nodes(const Invocation& call, const SbcastRequest& r) {
  if (r.step) {
    const proto::StepAttach ask_for{{*r.job, {}}, *r.step};
    ASSIGN(granted, ask<proto::StepGranted>(call.program(), ask_for));
    ASSIGN(permission, codec::decode<proto::StepPermission>(granted->permission));
    std::vector<std::string> nodes;
    for (const proto::StepNode& node : permission->nodes) nodes.push_back(node.node);
    return nodes;
  }
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  if (!r.job && list != nullptr) return expand_hostlist(list);
  proto::ShowJob show;
  show.job.job = *r.job;
  ASSIGN(reply, ask<proto::ShowJobReply>(call.program(), show));
  if (reply->jobs.empty()) return fail(ErrorCode::wrong_state, "Invalid job id specified");
  // A job's own program may ask before the controller has heard from the node that the job runs.
  const proto::JobRow& row = reply->jobs[0].row;
  if (row.node_list.empty() || (row.phase != Phase::running && row.phase != Phase::starting))
    return fail(ErrorCode::wrong_state, "Invalid job id specified");
  return expand_hostlist(row.node_list);
}

struct SbcastSource {
  std::string path, name;
  struct stat status {};
};

// Starts srun with the file as its input. The step's output and errors are passed to those of this
// process.
Result<pid_t> start_sbcast_copy(const std::string& node, const SbcastSource& source,
                                const SbcastRequest& r, const std::string& to) {
  std::vector<std::string> words{"srun", "-Q", "--overlap", "-N1", "-n1", "-w", node};
  if (r.job) words.push_back(fmt::format("--jobid={}", r.job->value()));
  const std::string when = r.preserve ? std::to_string(source.status.st_mtime) : "";
  for (const std::string& word :
       {std::string("sh"), std::string("-c"), std::string(kReceive), std::string("sbcast"), to,
        std::to_string(source.status.st_size), fmt::format("{:04o}", source.status.st_mode & 0777),
        std::string(r.force ? "1" : "0"), when, source.name, std::to_string(r.block)})
    words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, source.path.c_str(), O_RDONLY, 0);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    return fail(ErrorCode::io_error, fmt::format("cannot start srun: {}", std::strerror(error)));
  return pid;
}

// The lines that Slurm's sbcast prints with -v.
void say_request(const SbcastRequest& r, const SbcastSource& source, const std::string& to) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print(stderr, "sbcast: {:<10} = {}\n", name, value);
  };
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  const char* own = std::getenv("SLURM_JOB_ID");
  fmt::print(stderr, "sbcast: -----------------------------\n");
  line("block_size", std::to_string(r.block));
  line("force", truth(r.force));
  line("fanout", std::to_string(r.fan_out));
  line("jobid", r.job ? std::to_string(r.job->value()) : own != nullptr ? own : "");
  line("preserve", truth(r.preserve));
  line("source", source.path);
  line("dest", to);
  line("modes", fmt::format("{:o}", source.status.st_mode & 07777));
  line("size", std::to_string(source.status.st_size));
  fmt::print(stderr, "sbcast: -----------------------------\n");
}

// Waits for one of the copies. Returns false if it failed, which srun or the step has reported.
bool end_sbcast_copy(const Invocation& call, const SbcastRequest& r,
                     std::map<pid_t, std::string>& under_way) {
  int status = 0;
  const pid_t pid = ::waitpid(-1, &status, 0);
  const auto it = under_way.find(pid);
  if (it == under_way.end()) return true;  // interrupted by a signal
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!good)
    complain(call, fmt::format("REQUEST_FILE_BCAST({}): the file is not there", it->second));
  if (good && r.verbose) fmt::print(stderr, "sbcast: {}: done\n", it->second);
  under_way.erase(it);
  return good;
}

Result<int> run_sbcast(const Invocation& call) {
  int status = 0;
  SbcastRequest r;
  const auto operands = parse_into(call, &r, status);
  if (!operands) return status;
  const auto refuse = [&](const std::string& why) { return complain(call, why); };
  if (operands->size() != 2)
    return refuse(fmt::format("Need two file names, have {} names", operands->size()));
  if (!r.job && std::getenv("SLURM_JOB_ID") == nullptr)
    return refuse(
        "Need a job id to run this command.  Run from within a Slurm job or use the "
        "--jobid option.");
  SbcastSource source{(*operands)[0], (*operands)[0].substr((*operands)[0].rfind('/') + 1)};
  if (::stat(source.path.c_str(), &source.status) != 0)
    return refuse(fmt::format("Can't open `{}`: {}", source.path, std::strerror(errno)));
  if (!S_ISREG(source.status.st_mode))
    return refuse(fmt::format("`{}`: Not a regular file", source.path));
  const auto nodes = sbcast_nodes(call, r);
  if (!nodes) return refuse(words_for(nodes.error()).text);
  if (r.verbose) say_request(r, source, (*operands)[1]);
  std::map<pid_t, std::string> under_way;
  bool good = true;
  for (const std::string& node : *nodes) {
    const auto pid = start_sbcast_copy(node, source, r, (*operands)[1]);
    if (!pid) return refuse(pid.error().message);
    under_way.emplace(*pid, node);
    while (under_way.size() >= r.fan_out) good = end_sbcast_copy(call, r, under_way) && good;
  }
  while (!under_way.empty()) good = end_sbcast_copy(call, r, under_way) && good;
  return good ? 0 : 1;
}

}  // namespace

extern const Command kSbcast;
const Command kSbcast{
    {"sbcast", "Copy a file to the nodes of a job", "SOURCE DESTINATION"},
    {.description =
         "Slurm's sbcast. A step on each node of the job writes the file, in the job's container, "
         "so "
         "that /tmp is the job's own. A copy is there as a whole or not at all; one that exists is "
         "replaced with --force only.",
     .options = kSbcastOptions,
     .examples = {{"sbcast model.bin /tmp/model.bin",
                   "In a job: into the private /tmp of each of its nodes"},
                  {"sbcast -f -j 12 conf.yaml /tmp/", "Into a running job's, from outside"}},
     .exits = {{"0", "every node has it"}, {"1", "some node has not, which was said"}},
     .run = run_sbcast,
     .env_prefixes = kSbcastPrefixes}};

}  // namespace gantry::cli::slurm
