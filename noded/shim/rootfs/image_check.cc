#include "noded/shim/rootfs/image_check.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "noded/image/digest.h"

namespace gantry::runtime {
namespace {

constexpr const char* kPassed = "passed";  // beside the tree; its text says what let the image pass
constexpr std::uint32_t kNobody = 65534;

// Changes with the program's file and with its arguments.
std::string mark_of(const std::vector<std::string>& command) {
  struct stat st {};
  std::string text;
  if (::stat(command.front().c_str(), &st) == 0)
    text = std::to_string(st.st_ino) + " " + std::to_string(st.st_size) + " " +
           std::to_string(st.st_mtim.tv_sec) + "." + std::to_string(st.st_mtim.tv_nsec);
  for (const std::string& word : command) text += '\0' + word;
  return sha256_hex(text);
}

}  // namespace

Result<void> check_image(const Shim& shim, const std::string& name, const std::string& tree,
                         Signals& signals) {
  const std::vector<std::string>& command = shim.setup.image_check;
  if (command.empty()) return {};
  const std::string home = tree.substr(0, tree.rfind('/'));  // .../images/<key>
  const std::string key = home.substr(home.rfind('/') + 1);
  const std::string mark = mark_of(command);
  if (read_file(home + "/" + kPassed).value_or("") == mark) return {};
  ChildSpec spec;
  spec.argv = command;
  spec.argv.insert(spec.argv.end(), {name, key});
  // The cache is closed to everybody else, so the program gets the image as its working directory.
  const Fd inside(::open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!inside) return fail_errno(ErrorCode::runtime_failed, tree);
  spec.more = {inside.get()};
  spec.cwd = "/proc/self/fd/3";
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "GANTRY_NODE=" + shim.setup.node,
              "GANTRY_JOB_USER=" + shim.request.owner.user, "GANTRY_TENANT=" + shim.request.tenant};
  if (!shim.setup.rootless) {
    spec.uid = spec.gid = kNobody;
    spec.namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    spec.read_only = true;
  }
  spec.goes_first = true;
  const auto end = run_to_end(std::move(spec), signals, shim.setup.hook_timeout);
  const auto failed = [&](const std::string& why) {
    return fail(ErrorCode::runtime_failed, "image_check " + command.front() + ": " + why);
  };
  if (!end) return failed(end.error().message);
  if (!end->stopped.empty()) return failed(end->stopped);
  if (!WIFEXITED(end->status)) return failed(status_text(end->status));
  if (WEXITSTATUS(end->status) != 0) {
    const std::string said = last_line(end->output);
    return fail(ErrorCode::permission_denied,
                "image " + name + " is refused here: " +
                    (said.empty() ? status_text(end->status) + " of " + command.front() : said));
  }
  const Fd dir(::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir) (void)write_whole(dir.get(), kPassed, mark, Durability::none);
  return {};
}

Result<void> check_directory(const Shim& shim, const std::string& path) {
  if (shim.setup.image_check.empty()) return {};
  return fail(
      ErrorCode::permission_denied,
      "image " + path +
          ": it is a directory, which can change after it was looked at, and this node looks "
          "at images before they are used (noded.image_check)");
}

}  // namespace gantry::runtime
