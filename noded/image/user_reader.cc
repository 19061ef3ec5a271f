#include "noded/image/user_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "noded/runtime/become_user.h"

namespace gantry::runtime {
UserReader::~UserReader() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

int UserReader::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0)
    if (errno != EINTR) break;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Result<void> UserReader::split(const Owner& owner, Fd& writer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
  pipe_.reset(ends[0]);
  writer.reset(ends[1]);
  const int parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (pid_ > 0) {
    writer.reset();
    return {};
  }
  pipe_.reset();
  std::vector<gid_t> groups;
  for (const auto g : owner.groups) groups.push_back(g.value());
  if (become_user(owner.uid.value(), owner.gid.value(), groups.data(), groups.size()) != nullptr ||
      ::getppid() != parent)
    ::_exit(125);
  return {};
}

void UserReader::leave(int status) {
  ::_exit(status);
}

}  // namespace gantry::runtime
