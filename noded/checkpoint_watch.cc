#include "noded/checkpoint_watch.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "noded/machine/user_child.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {
namespace {

// Runs in the child, after fork, so it makes only system calls and allocates nothing. It writes a
// time for each path, in microseconds since 1970; 0 if there is no such file that the job may see.
[[noreturn]] void look_as_user(const Owner& owner, const gid_t* groups, std::size_t group_count,
                               const std::vector<std::string>& paths,
                               const std::vector<runtime::StorageView>& views, int out) {
  if (runtime::become_user(owner.uid.value(), owner.gid.value(), groups, group_count) != nullptr)
    ::_exit(1);
  if (out != 3 && ::dup2(out, 3) < 0) ::_exit(1);
  ::syscall(SYS_close_range, 4u, ~0u, 0u);  // closes the daemon's inherited locks and sockets
  for (std::size_t i = 0; i < paths.size(); ++i) {
    struct stat facts {};
    std::int64_t time = 0;
    const int file = ::open(paths[i].c_str(), O_PATH | O_CLOEXEC);
    if (file >= 0 && ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
        runtime::shows(views[i], file))
      time = std::int64_t{facts.st_mtim.tv_sec} * 1'000'000 + facts.st_mtim.tv_nsec / 1000;
    if (file >= 0) ::close(file);
    if (::write(3, &time, sizeof time) != sizeof time) ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

CheckpointWatch::CheckpointWatch(loop::Loop& loop)
    : loop_(loop), timer_(loop.every(kLookEvery, [this] { look(); })) {}

CheckpointWatch::~CheckpointWatch() {
  for (auto& [number, one] : looks_) ::kill(one.pid, SIGKILL);
}

void CheckpointWatch::watch(const proto::AttemptKey& key, const Owner& owner,
                            const std::string& path, runtime::StorageView view) {
  if (path.empty() || path[0] != '/') return;
  if (::geteuid() != 0 && ::geteuid() != owner.uid.value()) return;
  watched_[key] = {owner, path, std::move(view), std::nullopt};
}

std::vector<proto::AttemptCheckpoint> CheckpointWatch::newest(Instant now) const {
  const Instant wall = runtime::wall_clock();
  std::vector<proto::AttemptCheckpoint> out;
  for (const auto& [key, one] : watched_)
    if (one.written) out.push_back({key, now - std::max(Duration{}, wall - *one.written)});
  return out;
}

void CheckpointWatch::look() {
  std::set<Uid> users;
  for (const auto& [key, one] : watched_) users.insert(one.owner.uid);
  // Skips users whose last look has not ended yet.
  for (const auto& [number, one] : looks_)
    for (const proto::AttemptKey& key : one.keys)
      if (const auto it = watched_.find(key); it != watched_.end())
        users.erase(it->second.owner.uid);
  std::vector<Uid> order(users.upper_bound(last_user_), users.end());
  order.insert(order.end(), users.begin(), users.upper_bound(last_user_));
  for (const Uid user : order) {
    if (looks_.size() >= kMaxLooks) return;
    last_user_ = user;
    start(user);
  }
}

void CheckpointWatch::start(Uid user) {
  const std::uint64_t number = next_++;
  Look& one = looks_[number];
  const Owner* owner = nullptr;
  for (const auto& [key, watched] : watched_) {
    if (watched.owner.uid != user) continue;
    owner = &watched.owner;
    one.keys.push_back(key);
    one.paths.push_back(watched.path);
    one.views.push_back(watched.view);
  }
  one.times = Fd(::memfd_create("gantry-checkpoints", MFD_CLOEXEC));
  std::vector<gid_t> groups;
  for (const auto gid : owner->groups) groups.push_back(gid.value());
  one.pid = one.times ? ::fork() : -1;
  if (one.pid == 0)
    look_as_user(*owner, groups.data(), groups.size(), one.paths, one.views, one.times.get());
  if (one.pid < 0) {
    looks_.erase(number);
    return;
  }
  auto watch =
      loop_.on_process_end(one.pid, [this, number](loop::ProcessEnd) { finished(number); });
  if (!watch) {  // the child has ended but was not reaped, so its output is complete
    finished(number);
    return;
  }
  one.ended = std::move(*watch);
  one.limit = loop_.after(kLookLimit, [this, number] {
    if (const auto it = looks_.find(number); it != looks_.end()) ::kill(it->second.pid, SIGKILL);
  });
}

void CheckpointWatch::finished(std::uint64_t number) {
  const auto it = looks_.find(number);
  if (it == looks_.end()) return;
  const Look one = std::move(it->second);
  looks_.erase(it);
  for (std::size_t i = 0; i < one.keys.size(); ++i) {
    std::int64_t time = 0;
    const auto at = static_cast<off_t>(i * sizeof time);
    if (::pread(one.times.get(), &time, sizeof time, at) != sizeof time) return;
    const auto watched = watched_.find(one.keys[i]);
    if (watched != watched_.end() && time > 0) watched->second.written = Instant{time};
  }
}

}  // namespace gantry::node
