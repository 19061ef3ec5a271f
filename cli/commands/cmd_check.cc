// gantry check: tests whether the cluster is as its configuration describes, with one line for each
// difference; with --tenant or --walls, tests the isolation of jobs.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "cli/cluster/daemons.h"
#include "cli/cluster/wall_probe.h"
#include "cli/command.h"
#include "cli/session.h"
#include "common/codec/codec.h"
#include "common/job/verdict_text.h"
#include "common/text/printable.h"

namespace gantry::cli::gantry_check {
namespace {

struct CheckOptions {
  std::string tenant, sandbox;
  bool walls = false, json = false, inside = false;
};

Result<void> set_sandbox(CheckOptions& o, std::string_view text) {
  for (const auto& row : enum_names(Sandbox{}))
    if (row.second == text) {
      o.sandbox = text;
      return {};
    }
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("\"{}\" is no sandbox; there are standard, hardened, gvisor and vm", text));
}

constexpr Option kOptions[] = {
    takes("tenant", "TENANT",
          "Start a container as a job of this tenant on each node, which tries to get through the "
          "walls around it",
          put<&CheckOptions::tenant>),
    flag("walls", "The same in the default partition", put<&CheckOptions::walls>),
    takes("sandbox", "LEVEL", "With this sandbox, and what it promises besides", call<set_sandbox>),
    flag("json", "As JSON", put<&CheckOptions::json>),
    flag("inside",
         "Try it in this process, without a container, and print it as JSON: what runs in the "
         "containers",
         put<&CheckOptions::inside>),
};

std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : std::string();
}

// The container is that of a step, in a job of the asker, as for every job of the tenant.
Result<WallReport> probe_on(const std::string& node, const CheckOptions& o) {
  const std::string own = own_path();
  std::vector<std::string> words{"grun", "-w", node, "-n1", "-t", "2", "-J", "gantry-check"};
  if (!o.tenant.empty()) words.insert(words.end(), {"-p", o.tenant});
  if (!o.sandbox.empty()) words.push_back("--sandbox=" + o.sandbox);
  words.insert(words.end(), {own, "check", "--inside"});
  if (!o.sandbox.empty()) words.push_back("--sandbox=" + o.sandbox);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::io_error, fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorCode::io_error, fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(own.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  auto report = codec::from_json<WallReport>(text);
  if (!report)
    return fail(ErrorCode::unavailable,
                fmt::format("node {}: no container has answered (see above)", node));
  for (WallFinding& f : report->findings) f.node = node;
  return report;
}

bool may_have_jobs(const proto::NodeRow& node) {
  return node.health == NodeHealth::up && node.intent == NodeIntent::open;
}

void print(const WallReport& report) {
  const WallFinding header{"NODE", "LAYER", "ATTEMPT", "STATE", "WHY"};
  std::size_t node = 4, layer = 5, attempt = 7;
  for (const WallFinding& f : report.findings) {
    node = std::max(node, f.node.size());
    layer = std::max(layer, f.layer.size());
    attempt = std::max(attempt, f.attempt.size());
  }
  const auto line = [&](const WallFinding& f) {
    fmt::print("{:<{}} {:<{}} {:<{}} {:<12} {}\n", f.node, node, f.layer, layer, f.attempt, attempt,
               f.state, printable(f.why));
  };
  line(header);
  for (const WallFinding& f : report.findings) line(f);
}

Result<int> check_walls(const CheckOptions& o, const std::vector<std::string>& named,
                        const std::vector<proto::NodeRow>& nodes) {
  WallReport all;
  int status = 0;
  for (const proto::NodeRow& node : nodes) {
    const bool wanted =
        named.empty() || std::find(named.begin(), named.end(), node.name) != named.end();
    if (!wanted || (named.empty() && !may_have_jobs(node))) continue;
    auto report = probe_on(node.name, o);
    if (!report) {
      fmt::print(stderr, "gantry check: {}\n", report.error().message);
      status = 1;
      continue;
    }
    for (WallFinding& f : report->findings) all.findings.push_back(std::move(f));
    for (const std::string& layer : node.layers_off)
      all.findings.push_back(
          {node.name, layer.substr(0, layer.find(':')), "", "off",
           layer.find(": ") == std::string::npos ? "" : layer.substr(layer.find(": ") + 2)});
  }
  if (o.json)
    fmt::print("{}\n", codec::to_json(all, codec::JsonStyle::pretty));
  else
    print(all);
  const auto open = std::count_if(all.findings.begin(), all.findings.end(),
                                  [](const WallFinding& f) { return f.state == kWallOff; });
  if (!o.json && open > 0)
    fmt::print("{} went through\n", counted(static_cast<std::int64_t>(open), "attempt"));
  return open > 0 ? 1 : status;
}

Result<int> run(const Invocation& in) {
  CheckOptions o;
  OPERANDS(operands, in, &o, 0, kAnyOperands);
  if (o.inside) {
    Sandbox level = Sandbox::standard;
    for (const auto& row : enum_names(Sandbox{}))
      if (row.second == o.sandbox) level = row.first;
    fmt::print("{}\n", codec::to_json(probe_walls(level), codec::JsonStyle::compact));
    return 0;
  }
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(nodes, session->call<proto::ListNodesReply>(proto::ListNodes{**operands, {}, true}));
  if (o.walls || !o.tenant.empty()) return check_walls(o, **operands, nodes->nodes);
  if (o.json || !o.sandbox.empty())
    return fail(ErrorCode::usage, "--json and --sandbox go with --tenant or --walls");
  const auto wrong = check_cluster(nodes->nodes);
  for (const std::string& line : wrong) fmt::print("{}\n", line);
  std::size_t gpus = 0;
  for (const proto::NodeRow& node : nodes->nodes) gpus += node.gpus.gpus.size();
  fmt::print("{}, {}: {}\n", counted(static_cast<std::int64_t>(nodes->nodes.size()), "node"),
             counted(static_cast<std::int64_t>(gpus), "GPU"),
             wrong.empty() ? "good" : fmt::format("{} not as they should be", wrong.size()));
  const auto off = layers_that_are_off(nodes->nodes);
  if (!off.empty()) fmt::print("Isolation layers that are off:\n");
  for (const std::string& line : off) fmt::print("  {}\n", line);
  return wrong.empty() ? 0 : 1;
}

}  // namespace

extern const Command kCheck;
const Command kCheck{
    {"check", "Say what is wrong with the cluster", "[NODE...]"},
    {.description =
         "Asks the controller for its nodes, and names those that are down or drained, and GPUs, "
         "drivers and slices that are not as they should be, each with why. Says too which layers "
         "of "
         "isolation the nodes could not put around jobs.\n\n"
         "With --tenant or --walls it is an attacker: a container that is started as every job of "
         "the tenant tries to get through each layer. on: the layer stopped it. OFF: it went "
         "through, and the exit status is 1. not testable: the machine has nothing to try it on.",
     .options = kOptions,
     .examples = {{"gantry check", "What is wrong with nodes and GPUs"},
                  {"gantry check --tenant fraud",
                   "Do the walls around jobs of fraud stand, on each node?"}},
     .exits = {{"0", "nothing is wrong"},
               {"1", "something is, or no answer; an attempt went through a wall"},
               {"2", "the command line is wrong"}},
     .run = run}};

}  // namespace gantry::cli::gantry_check
