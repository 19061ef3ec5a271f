#include "noded/shim/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "noded/shim/as_user.h"

namespace gantry::runtime {
namespace {

constexpr unsigned kOutputMode = 0666;  // less the umask

Result<std::string> file_of(const NodeSetup& setup, const LaunchRequest& request,
                            const std::string& pattern, const std::string& fallback) {
  auto name = expand_pattern(pattern.empty() ? fallback : pattern, pattern_values(setup, request));
  if (!name) return name;
  return absolute_path(request.work_dir, *name);
}

// Not waiting for the other end of a named pipe: a start must stay interruptible. Never a
// directory: its descriptor would lead out of the container, to the host's own mounts.
Result<Fd> open_ready(const AsUser& user, const std::string& path, int flags, unsigned mode) {
  auto fd = user.open(path, flags | O_NONBLOCK | O_NOCTTY, mode);
  if (!fd) return fd;
  struct stat st {};
  if (::fstat(fd->get(), &st) != 0 || S_ISDIR(st.st_mode))
    return fail(ErrorCode::invalid_argument, path + ": is a directory");
  ::fcntl(fd->get(), F_SETFL, flags & O_APPEND);
  return fd;
}

}  // namespace

PatternValues pattern_values(const NodeSetup& setup, const LaunchRequest& request) {
  PatternValues v;
  v.job = request.key.job;
  v.array_job = request.array_job;
  v.array_task = request.array_task;
  v.name = request.name;
  v.user = request.owner.user;
  v.node = setup.node;
  v.node_index = request.node_index;
  return v;
}

std::string absolute_path(const std::string& work_dir, const std::string& path) {
  return path.starts_with('/') ? path : work_dir + "/" + path;
}

Result<Fd> open_output(const LaunchRequest& request, const std::string& path) {
  // Appending always: the script, its children and a notice of ours may write to one file.
  int flags = O_WRONLY | O_CREAT | O_APPEND;
  if (request.open_mode == OpenMode::truncate) flags |= O_TRUNC;
  const AsUser user(request.owner);
  auto fd = open_ready(user, path, flags, kOutputMode);
  if (!fd) return fail(fd.error().code, "output file " + fd.error().message);
  return fd;
}

Result<StandardFiles> open_standard_files(const NodeSetup& setup, const LaunchRequest& request) {
  StandardFiles files;
  const std::string fallback = request.array_task ? "gantry-%A_%a.out" : "gantry-%j.out";
  const auto out = file_of(setup, request, request.std_out, fallback);
  if (!out) return tl::unexpected(out.error());
  auto out_fd = open_output(request, *out);
  if (!out_fd) return tl::unexpected(out_fd.error());
  files.out = std::move(*out_fd);
  if (!request.std_err.empty()) {
    const auto err = file_of(setup, request, request.std_err, "");
    if (!err) return tl::unexpected(err.error());
    if (*err != *out) {
      auto err_fd = open_output(request, *err);
      if (!err_fd) return tl::unexpected(err_fd.error());
      files.err = std::move(*err_fd);
    }
  }
  const auto in = file_of(setup, request, request.std_in, "/dev/null");
  if (!in) return tl::unexpected(in.error());
  const AsUser user(request.owner);
  auto in_fd = open_ready(user, *in, O_RDONLY, 0);
  if (!in_fd) return fail(in_fd.error().code, "input file " + in_fd.error().message);
  files.in = std::move(*in_fd);
  return files;
}

}  // namespace gantry::runtime
