// The life of a step's tasks on this node: they are started inside the job's container, their
// output is moved, their exits are reported, and a record is left. The step ends with its last
// task; processes that tasks left running are killed with the step's cgroup.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/shim/io/step_io.h"
#include "noded/shim/process/step_tasks.h"
#include "noded/shim/run/step_bounds.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {
namespace {

constexpr Duration kKillPatience = seconds(10);

class Control : public StepControl {
 public:
  explicit Control(StepTasks& tasks) : tasks_(tasks) {}
  void input(std::string_view bytes) override { tasks_.input(bytes); }
  void close_input() override { tasks_.close_input(); }
  void signal(int number) override { tasks_.signal(number); }
  [[nodiscard]] bool input_full() const override { return tasks_.input_full(); }
  void window(const proto::TerminalSize& size) override { tasks_.window(size); }
  void peer(std::uint32_t node, std::string_view bytes) override { tasks_.peer(node, bytes); }

 private:
  StepTasks& tasks_;
};

void run_tasks(StepTasks& tasks, StepAudience& io, StepBounds& bounds, Signals& signals,
               Control& control) {
  bool killed = false;
  while (tasks.running()) {
    io.look_at_input(control);
    std::vector<pollfd> watched{{signals.fd(), POLLIN, 0}, {io.fd(), io.events(), 0}};
    io.add_watched(watched);
    for (const auto& w : tasks.wanted()) watched.push_back({w.fd, w.events, 0});
    ::poll(watched.data(), watched.size(), bounds.pause());
    bounds.look(tasks, io);
    bool reap = false, attach = false;
    for (int s = signals.next(); s != 0; s = signals.next()) {
      reap = reap || s == SIGCHLD;
      attach = attach || s == kAttachSignal;
      if (s == SIGTERM) {
        bounds.say_cancelled(io);
        tasks.signal(SIGKILL);
      }
    }
    if (watched[1].revents != 0) io.ready(watched[1].revents, control);
    io.serve(watched.data() + 2, control);
    if (attach) {
      io.look_for_attachments();
      bounds.look_at_limit();
    }
    if (io.lost() && !killed) {
      killed = true;
      tasks.signal(SIGKILL);
    }
    tasks.write_input();
    tasks.move_output();
    tasks.serve_mpi();
    if (reap) tasks.collect_exits();
  }
  tasks.drain();
}

// Returns the largest exit code; a signal counts as 128 + its number.
ExitStatus worst(const std::vector<ExitStatus>& all) {
  ExitStatus out;
  const auto weight = [](const ExitStatus& s) { return s.signal != 0 ? 128 + s.signal : s.code; };
  for (const auto& s : all)
    if (weight(s) > weight(out)) out = s;
  return out;
}

// What the step used. Without a cgroup that counts it, the kernel's counters of its tasks are used.
Usage usage_of(const Shim& shim, const std::string& cgroup, const StepTasks& tasks,
               const StepBounds& bounds) {
  Usage usage = read_usage(shim.setup.cgroups, cgroup);
  const Usage& counted = tasks.usage();
  if (usage.cpu_user_us + usage.cpu_system_us == 0) {
    usage.cpu_user_us = counted.cpu_user_us;
    usage.cpu_system_us = counted.cpu_system_us;
  }
  usage.memory_peak_bytes =
      std::max({usage.memory_peak_bytes, counted.memory_peak_bytes, bounds.peak()});
  return usage;
}

// Records processes of the step that the kernel killed for memory, because the step's directory and
// its counter will be removed. If the limit was the job's, the job's shim has to know (job_run.cc).
void note_oom_kills(const Shim& shim, const StepRequest& request, const std::string& cgroup,
                    ExitRecord& record) {
  if (!counts_memory(shim.setup.cgroups, cgroup)) return;
  record.oom_kills = read_oom_kills(shim.setup.cgroups, cgroup);
  if (record.oom_kills == 0) return;
  record.cause = ExitCause::out_of_memory;
  if (request.memory > 0) return;
  const Fd kills(
      ::openat(shim.dir_fd.get(), kOomFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string marks(record.oom_kills, '.');
  (void)!::write(kills.get(), marks.data(), marks.size());
}

Result<StepRequest> read_request(const std::string& dir) {
  ASSIGN(bytes, read_file(dir + "/" + kLaunchFile));
  return codec::decode<StepRequest>(*bytes);
}

}  // namespace

int run_step(Shim& shim, StepId step, Signals& signals) {
  const std::string dir = step_dir(shim.setup.state_dir, shim.request.key, step);
  const Fd dir_fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ExitRecord record;
  record.key = shim.request.key;
  const auto request = read_request(dir);
  auto grun = request ? make_step_io(shim, *request)
                      : Result<std::unique_ptr<StepIo>>(tl::unexpected(request.error()));
  Result<void> outcome;
  if (!grun) outcome = tl::unexpected(grun.error());
  std::optional<StepAudience> io;
  std::optional<StepTasks> tasks;
  std::optional<Control> control;
  std::optional<StepBounds> bounds;
  std::optional<Beginning> began;
  if (grun) {
    io.emplace(shim, *request, dir, std::move(*grun));
    tasks.emplace(shim, *request, *io);
    control.emplace(*tasks);
    bounds.emplace(shim, *request);
    outcome = tasks->start(signals);
    if (outcome) {
      began = Beginning::now();
      record.started = began->at;
      notify(shim, NoteKind::running);
      io->started(static_cast<std::uint32_t>(request->task_env.size()));
      // Attachments may have come before the shim could take the signal.
      io->look_for_attachments();
      bounds->begin(dir);
      keep_only_what_a_step_needs(shim);
      run_tasks(*tasks, *io, *bounds, signals, *control);
      io->look_for_attachments();  // readers who attach this late are at least told how it ended
      tasks->end_mpi();
      record.tasks = tasks->statuses();
      record.exit = worst(record.tasks);
      record.unheard = io->lost();
      record.timed_out = bounds->timed_out();
      if (bounds->out_of_memory()) record.cause = ExitCause::out_of_memory;
    }
  }
  if (!outcome) {
    record.cause = ExitCause::launch_failed;
    record.message = on_node(shim, outcome.error().message);
    record.exit = {1, 0};
    if (io && request)  // grun must be told that its tasks will never write anything
      for (std::uint32_t task = 0; task < request->task_env.size(); ++task)
        io->exited(task, record.exit, outcome.error().message);
  }
  const auto cgroup = step_cgroup(shim.request.key, step);
  kill_cgroup(shim.setup.cgroups, cgroup, kKillPatience);
  if (tasks) {
    record.usage = usage_of(shim, cgroup, *tasks, *bounds);
    note_oom_kills(shim, *request, cgroup, record);
  }
  remove_cgroup(shim.setup.cgroups, cgroup, kKillPatience);
  record.ended = began ? began->at + began->ran() : wall_clock();
  if (io) io->finish(record);
  write_exit_record(shim, dir_fd.get(), record);
  if (io) io->let_go(*control);
  return 0;
}

}  // namespace gantry::runtime
