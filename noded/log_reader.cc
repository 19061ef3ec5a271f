#include "noded/log_reader.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "noded/machine/storage_view.h"
#include "noded/machine/user_child.h"

namespace gantry::node {

namespace {

constexpr int kNotRegular = 254;  // exit status of the child; others are errno, or 0

// Opens the path first with an O_PATH descriptor, which can neither read nor write, so that only a
// regular file is ever opened for reading.
int open_regular(const char* path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const auto there = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
  if (there < 0) ::_exit(errno);
  struct stat facts {};
  struct statfs fs {};
  if (::fstat(there, &facts) != 0 || ::fstatfs(there, &fs) != 0) ::_exit(errno);
  if (!S_ISREG(facts.st_mode) || !runtime::pseudo_of_magic(static_cast<long>(fs.f_type)).empty())
    ::_exit(kNotRegular);
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", there);
  const int in = ::open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (in < 0) ::_exit(errno);
  return in;
}

// Runs in the child, after fork, so it makes only system calls and allocates nothing.
[[noreturn]] void copy_as_user(const proto::FetchLog& fetch, const runtime::StorageView& view,
                               const gid_t* groups, std::size_t count, int out) {
  if (runtime::become_user(fetch.owner.uid.value(), fetch.owner.gid.value(), groups, count) !=
      nullptr)
    ::_exit(errno);
  if (out != 3 && ::dup2(out, 3) < 0) ::_exit(errno);
  ::syscall(SYS_close_range, 4u, ~0u, 0u);  // closes the daemon's inherited locks and sockets
  const int in = open_regular(fetch.path.c_str());
  if (!runtime::shows(view, in)) ::_exit(ENOENT);
  auto offset = static_cast<off_t>(fetch.offset);
  std::size_t left = std::min(fetch.max_bytes, kMaxLogBytes);
  char buffer[65536];
  while (left > 0) {
    const ssize_t got = ::pread(in, buffer, std::min(left, sizeof buffer), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ::_exit(errno);
    if (got == 0) break;
    if (::write(3, buffer, static_cast<std::size_t>(got)) != got) ::_exit(EIO);
    offset += got;
    left -= static_cast<std::size_t>(got);
  }
  ::_exit(0);
}

Bytes contents(int fd) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0 || facts.st_size <= 0) return {};
  Bytes data(std::min<std::size_t>(static_cast<std::size_t>(facts.st_size), kMaxLogBytes), '\0');
  const ssize_t got = ::pread(fd, data.data(), data.size(), 0);
  data.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return data;
}

}  // namespace

LogReader::LogReader(loop::Loop& loop, std::string node, std::vector<std::string> storage,
                     std::function<void(proto::FetchLogReply&&)> done)
    : loop_(loop), node_(std::move(node)), storage_(std::move(storage)), done_(std::move(done)) {}

LogReader::~LogReader() {
  for (auto& [number, one] : reads_) ::kill(one.pid, SIGKILL);
}

void LogReader::answer(std::uint64_t ticket, Bytes data, std::string error) {
  proto::FetchLogReply reply;
  reply.ticket = ticket;
  reply.data = std::move(data);
  reply.error = std::move(error);
  done_(std::move(reply));
}

void LogReader::read(const proto::FetchLog& fetch) {
  const auto refuse = [&](std::string_view why) {
    answer(fetch.ticket, {}, fmt::format("node {}: {}: {}", node_, fetch.path, why));
  };
  if (reads_.size() >= kMaxReads) return refuse("too many files are being read, try again");
  const auto own = std::ranges::count_if(
      reads_, [&](const auto& one) { return one.second.fetch.owner.uid == fetch.owner.uid; });
  if (own >= static_cast<std::ptrdiff_t>(kMaxReadsOfUser))
    return refuse("this user has " + std::to_string(own) + " files being read, try again");
  if (fetch.path.empty() || fetch.path[0] != '/') return refuse("not an absolute path");
  if (::geteuid() != 0 && ::geteuid() != fetch.owner.uid.value())
    return refuse("this node daemon runs as another user and cannot read it");
  const std::uint64_t number = next_++;
  OneRead& one = reads_[number];
  one.fetch = fetch;
  one.data = Fd(::memfd_create("gantry-log", MFD_CLOEXEC));
  std::vector<gid_t> groups;
  for (const auto gid : fetch.owner.groups) groups.push_back(gid.value());
  const runtime::StorageView view{storage_, fetch.storage};
  one.pid = one.data ? ::fork() : -1;
  if (one.pid == 0) copy_as_user(one.fetch, view, groups.data(), groups.size(), one.data.get());
  if (one.pid < 0) {
    const std::string why = std::strerror(errno);
    reads_.erase(number);
    return refuse(why);
  }
  auto watch = loop_.on_process_end(
      one.pid, [this, number](loop::ProcessEnd end) { finished(number, end); });
  if (!watch) {  // the child has ended already, and was reaped
    const std::string why = watch.error().message;
    reads_.erase(number);
    return refuse(why);
  }
  one.ended = std::move(*watch);
  one.limit = loop_.after(kReadLimit, [this, number] {
    const auto it = reads_.find(number);
    if (it == reads_.end()) return;
    it->second.given_up = true;
    ::kill(it->second.pid, SIGKILL);
  });
}

void LogReader::finished(std::uint64_t number, loop::ProcessEnd end) {
  const auto it = reads_.find(number);
  if (it == reads_.end()) return;
  const OneRead one = std::move(it->second);
  reads_.erase(it);
  const ExitStatus status = end.status.value_or(ExitStatus{EIO, 0});
  const auto say = [&](std::string_view why) {
    answer(one.fetch.ticket, {}, fmt::format("node {}: {}: {}", node_, one.fetch.path, why));
  };
  if (one.given_up)
    say("reading it took too long");
  else if (status.signal != 0)
    say("the process that read it was killed");
  else if (status.code == kNotRegular)
    say("not a regular file");
  else if (status.code != 0)
    say(std::strerror(status.code));
  else
    answer(one.fetch.ticket, contents(one.data.get()), {});
}

}  // namespace gantry::node
