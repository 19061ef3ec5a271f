// What an earlier noded left: directories of attempts, living shims, and cgroups without either.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "noded/runtime/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/runtime_state.h"

namespace gantry::runtime {
namespace {

using Stage = RecoveredAttempt::Stage;

constexpr Duration kPatience = seconds(10);

Result<LaunchRequest> read_request(const std::string& dir) {
  const auto bytes = read_file(dir + "/" + kLaunchFile);
  if (!bytes) return tl::unexpected(bytes.error());
  return codec::decode<LaunchRequest>(*bytes);
}

StepId step_of(const std::string& name) {
  return StepId{static_cast<std::uint32_t>(std::strtoul(name.c_str(), nullptr, 10))};
}

}  // namespace

std::vector<RecoveredAttempt> Runtime::recover() {
  auto& s = *state_;
  std::vector<RecoveredAttempt> found;
  std::vector<std::string> known;
  for (const auto& name : list_dir(jobs_dir(s.setup.state_dir))) {
    const auto key = parse_job_name(name);
    const std::string dir = jobs_dir(s.setup.state_dir) + "/" + name;
    if (!key) continue;
    RecoveredAttempt one;
    one.key = *key;
    auto request = read_request(dir);
    if (!request) {  // noded died while it wrote the record: nothing of it ran
      remove_tree(dir);
      continue;
    }
    one.request = std::move(*request);
    OneJob job;
    job.owner = one.request.owner;
    job.kind = one.request.kind;
    const auto state = find_shim(dir, job.shim);
    if (const auto running = s.running_record(*key); running) {
      if (running->started.us != 0) one.started = running->started;
      job.said_held = running->held;
      job.said_running = !running->held;
    }
    if (auto record = s.exit_record(dir)) {
      one.stage = Stage::ended;
      one.record = std::move(*record);
    } else if (state == ShimState::alive) {
      one.stage = job.said_held      ? Stage::held
                  : job.said_running ? Stage::running
                                     : Stage::preparing;
    } else if (state == ShimState::never_ran && !s.rebooted) {
      one.stage = Stage::never_started;
    } else {
      one.stage = Stage::ended;
      const auto usage = read_usage(s.setup.cgroups, job_cgroup(*key));
      kill_cgroup(s.setup.cgroups, job_cgroup(*key), kPatience);
      s.end_remains(*key);
      remove_cgroup(s.setup.cgroups, job_cgroup(*key), kPatience);
      one.record = s.lost_record(*key);
      one.record.usage = usage;
      const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      (void)write_whole(fd.get(), kExitFile, codec::encode(one.record), Durability::durable);
    }
    known.push_back(job_cgroup(*key));
    job.ended = one.stage == Stage::ended;
    if (one.stage != Stage::never_started) {
      if (state == ShimState::alive) s.watch(*key, std::nullopt, job.shim);
      for (const auto& step_name : list_dir(dir + "/steps")) {
        const auto step = step_of(step_name);
        const std::string step_path = dir + "/steps/" + step_name;
        OneStep entry;
        if (s.exit_record(step_path)) continue;
        if (find_shim(step_path, entry.shim) == ShimState::alive)
          s.watch(*key, step, entry.shim);
        else
          kill_cgroup(s.setup.cgroups, step_cgroup(*key, step), kPatience);
        if (entry.shim.pid != 0) job.steps.insert_or_assign(step, std::move(entry));
      }
      s.jobs.insert_or_assign(*key, std::move(job));
    }
    found.push_back(std::move(one));
  }
  for (const auto& name : list_cgroups(s.setup.cgroups)) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    kill_cgroup(s.setup.cgroups, name, kPatience);
    remove_cgroup(s.setup.cgroups, name, kPatience);
  }
  s.rebooted = false;
  return found;
}

}  // namespace gantry::runtime
