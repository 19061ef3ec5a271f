#include "noded/shim/run/step_bounds.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "common/text/text.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/landlock.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {

namespace {

constexpr Duration kFirstSample = milliseconds(100);
constexpr Duration kSampleEach = seconds(1);
constexpr Duration kSampleLimited = milliseconds(250);  // if nothing else enforces the limit

std::string local_time() {
  const std::time_t seconds = static_cast<std::time_t>(wall_clock().us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts)};
}

// The records and the cgroup of the job, which include those of its steps.
KeptPlaces places_of(const Shim& shim) {
  KeptPlaces places;
  places.whole.push_back(shim.dir);
  places.read = {"/proc", shim.setup.state_dir};
  const CgroupLayout& cgroups = shim.setup.cgroups;
  const auto add = [&](const std::string& node_dir) {
    places.whole.push_back(node_dir + "/" + job_cgroup(shim.request.key));
    places.removable.push_back(node_dir);
  };
  for (const CgroupMount& mount : cgroups.mounts) add(mount.path);
  for (const std::string& other : cgroups.others) add(other);
  return places;
}

}  // namespace

void StepBounds::begin(std::string dir) {
  const Instant now = timer_clock();
  dir_ = std::move(dir);
  began_ = now;
  if (request_.time_limit > Duration{}) end_ = now + request_.time_limit;
  look_at_limit();
  const auto& cgroups = shim_.setup.cgroups;
  const auto name = step_cgroup(request_.key, request_.step);
  if (cgroups.version != 0 && !counts_memory(cgroups, name)) sample_ = now + kFirstSample;
}

void StepBounds::look_at_limit() {
  if (timed_out_) return;
  const auto text = read_file(dir_ + "/" + kTimeLimitFile);
  if (!text) return;
  const auto limit = parse_integer("the time limit", *text, 0, INT64_MAX);
  if (!limit) return;
  end_.reset();
  if (*limit > 0) end_ = began_ + microseconds(*limit);
}

int StepBounds::pause() const {
  if (!end_ && !sample_) return -1;
  const Instant next = !end_ ? *sample_ : !sample_ ? *end_ : std::min(*end_, *sample_);
  const Duration left = next - timer_clock();
  return static_cast<int>(std::clamp<std::int64_t>((left.us + 999) / 1'000, 0, 60'000));
}

void StepBounds::look(StepTasks& tasks, StepIo& io) {
  const Instant now = timer_clock();
  if (sample_ && now >= *sample_) look_at_memory(io);
  if (end_ && now >= *end_) look_at_time(tasks, io);
}

void StepBounds::look_at_memory(StepIo& io) {
  const std::int64_t bytes =
      resident_bytes(shim_.setup.cgroups, step_cgroup(request_.key, request_.step));
  peak_ = std::max(peak_, bytes);
  sample_ = timer_clock() + (request_.memory > 0 ? kSampleLimited : kSampleEach);
  if (request_.memory <= 0 || bytes <= request_.memory || out_of_memory_) return;
  out_of_memory_ = true;
  say(io, "exceeded its memory limit of " + std::to_string(request_.memory) + " bytes");
  end_all();
}

void StepBounds::look_at_time(StepTasks& tasks, StepIo& io) {
  if (timed_out_) {
    end_.reset();
    end_all();
    return tasks.signal(SIGKILL);
  }
  timed_out_ = true;
  end_ = timer_clock() + request_.kill_wait;
  if (request_.node_index == 0) say(io, "CANCELLED AT " + local_time() + " DUE TO TIME LIMIT");
  tasks.signal(SIGTERM);
  tasks.signal(SIGCONT);  // a stopped task gets no other signal
}

void StepBounds::say_cancelled(StepIo& io) const {
  if (request_.node_index == 0) say(io, "CANCELLED AT " + local_time());
}

void StepBounds::end_all() const {
  kill_cgroup(shim_.setup.cgroups, step_cgroup(request_.key, request_.step), Duration{});
}

void StepBounds::say(StepIo& io, const std::string& what) const {
  io.notice("slurmstepd: error: *** STEP " + std::to_string(request_.key.job.value()) + "." +
                std::to_string(request_.step.value()) + " ON " + shim_.setup.node + " " + what +
                " ***",
            StepIo::Notice::end);
}

void keep_only_what_a_shim_needs(const Shim& shim) {
  const LaunchRequest& request = shim.request;
  if (!request.epilog.empty() || request.scratch > 0 || request.objects || shim.setup.rootless)
    return;
  KeptPlaces places = places_of(shim);
  if (!request.secrets_dir.empty()) {
    places.whole.push_back(request.secrets_dir);
    places.removable.push_back(request.secrets_dir + "/..");
  }
  keep_only(places);
}

void keep_only_what_a_step_needs(const Shim& shim) {
  if (!shim.setup.rootless) keep_only(places_of(shim));
}

}  // namespace gantry::runtime
