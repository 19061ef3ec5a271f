// Recovers what an earlier noded left: directories of attempts, living shims, and cgroups that have
// neither.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/runtime_state.h"

namespace gantry::runtime {
namespace {

using Stage = RecoveredAttempt::Stage;

constexpr Duration kPatience = seconds(10);

Result<LaunchRequest> read_request(const std::string& dir) {
  ASSIGN(bytes, read_file(dir + "/" + kLaunchFile));
  return codec::decode<LaunchRequest>(*bytes);
}

}  // namespace

std::vector<StepId> Runtime::State::steps_on_disk(const AttemptKey& key) const {
  std::vector<StepId> steps;
  for (const auto& name : list_dir(dir(key) + "/steps"))
    steps.emplace_back(static_cast<std::uint32_t>(std::strtoul(name.c_str(), nullptr, 10)));
  return steps;
}

// Steps whose shim lives are watched. Of all other steps no process may run on.
void Runtime::State::recover_steps(const AttemptKey& key, OneJob& job) {
  for (const StepId step : steps_on_disk(key)) {
    const std::string path = step_dir(setup.state_dir, key, step);
    if (exit_record(path)) continue;
    OneStep entry;
    if (find_shim(path, entry.shim) != ShimState::alive) {
      kill_cgroup(setup.cgroups, step_cgroup(key, step), kPatience);
      continue;
    }
    entry.running = true;
    watch(key, step, entry.shim);
    job.steps.insert_or_assign(step, std::move(entry));
  }
}

bool Runtime::State::epilog_over(const AttemptKey& key, OneJob& job) {
  if (!job.epilog_begun) {
    job.epilog_begun = true;
    const auto request = read_request(dir(key));
    if (!request || request->epilog.empty()) return true;
    auto process =
        start_process({setup.shim_path, "epilog", setup.state_dir, job_name(key)}, -1, log.get());
    if (!process) return true;  // no process can be started: the job's end must not wait for that
    job.epilog = std::move(*process);
  }
  if (job.epilog.pid == 0) return true;
  if (!reap_shim(job.epilog)) return false;
  job.epilog = {};
  return true;
}

// Ends what a lost shim left behind, and writes the exit record in its place.
ExitRecord Runtime::State::bury_now(const AttemptKey& key, OneJob& job) {
  const auto usage = read_usage(setup.cgroups, job_cgroup(key));
  kill_cgroup(setup.cgroups, job_cgroup(key), kPatience);
  end_remains(key);
  remove_cgroup(setup.cgroups, job_cgroup(key), kPatience);
  while (!epilog_over(key, job)) {  // the epilog has a time limit of its own
    pollfd watched{job.epilog.pidfd.get(), POLLIN, 0};
    ::poll(&watched, 1, 1000);
  }
  remove_lost_scratch(key);
  auto record = lost_record(key);
  record.usage = usage;
  const Fd fd(::open(dir(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)write_whole(fd.get(), kExitFile, codec::encode(record), Durability::durable);
  return record;
}

RecoveredAttempt Runtime::State::recover_job(const AttemptKey& key, LaunchRequest request) {
  RecoveredAttempt one;
  one.key = key;
  one.request = std::move(request);
  OneJob job;
  job.owner = one.request.owner;
  job.has_network = one.request.parts.has_value();
  job.facts = facts_of(one.request);
  job.kind = one.request.kind;
  job.most_steps = most_steps(one.request);
  // Whether the shim lives must be asked first: a shim that is gone by then has written everything
  // that it will ever write.
  const auto state = find_shim(dir(key), job.shim);
  if (const auto running = running_record(key)) {
    if (running->started.us != 0) one.started = running->started;
    job.said_held = running->held;
    job.said_running = !running->held;
    if (!running->held) job.asleep_before = running->asleep;
  }
  if (auto record = exit_record(dir(key))) {
    one.stage = Stage::ended;
    one.record = std::move(*record);
  } else if (state == ShimState::alive) {
    one.stage = job.said_held ? Stage::held : job.said_running ? Stage::running : Stage::preparing;
  } else if (state == ShimState::never_ran && !rebooted) {
    one.stage = Stage::never_started;
    return one;
  } else {
    one.stage = Stage::ended;
    one.record = bury_now(key, job);
  }
  job.ended = one.stage == Stage::ended;
  one.frozen = one.stage == Stage::running && is_frozen(setup.cgroups, job_cgroup(key));
  if (state == ShimState::alive) watch(key, std::nullopt, job.shim);
  recover_steps(key, job);
  jobs.insert_or_assign(key, std::move(job));
  return one;
}

std::vector<RecoveredAttempt> Runtime::recover() {
  auto& s = *state_;
  std::vector<RecoveredAttempt> found;
  std::vector<std::string> known;
  for (const auto& name : list_dir(jobs_dir(s.setup.state_dir))) {
    const auto key = parse_job_name(name);
    if (!key) continue;
    if (key->job == JobId{}) {  // a self-test that was cut off; its cgroup is removed below
      remove_tree(s.dir(*key));
      continue;
    }
    auto request = read_request(s.dir(*key));
    if (!request) {  // noded died while it wrote the record: the job never ran
      remove_tree(s.dir(*key));
      continue;
    }
    known.push_back(job_cgroup(*key));
    found.push_back(s.recover_job(*key, std::move(*request)));
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
