#include "noded/shim/io/outputs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "noded/runtime/job_dir.h"
#include "noded/shim/as_user.h"

namespace gantry::runtime {
namespace {

constexpr unsigned kOutputMode = 0666;  // reduced by the umask

Result<std::string> file_of(const NodeSetup& setup, const LaunchRequest& request,
                            const std::string& pattern, const std::string& fallback) {
  auto name = expand_pattern(pattern.empty() ? fallback : pattern, pattern_values(setup, request));
  if (!name) return name;
  return absolute_path(request.work_dir, *name);
}

struct WantedFile {
  const char* what;  // the beginning of an error's text
  std::string path;
  int flags;
};

// Output files are always opened in append mode, because the script, its children and a notice of
// the shim may write to the same file.
WantedFile output_file(const std::string& path, OpenMode mode) {
  int flags = O_WRONLY | O_CREAT | O_APPEND;
  if (mode == OpenMode::truncate) flags |= O_TRUNC;
  return {"output file ", path, flags};
}

std::string folder_of(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

// Some clients make the folder of the output files only after the submit, so this waits for a
// missing folder for a while. All of this happens in the user's process.
constexpr Duration kFolderPatience = seconds(5);
constexpr std::int64_t kShortestNap = 5'000, kLongestNap = 100'000;  // microseconds

Result<Fd> open_one(const AsUser& user, const WantedFile& one, Duration patience) {
  const Instant end = timer_clock() + patience;
  const std::string folder = folder_of(one.path);
  for (std::int64_t nap = kShortestNap;; nap = std::min(nap * 2, kLongestNap)) {
    auto fd = user.open_file(one.path, one.flags, kOutputMode);
    // A file that would be made is reported as missing only if its folder is missing.
    const bool missing = !fd && fd.error().code == ErrorCode::not_found;
    if (!missing || (one.flags & O_CREAT) == 0) return fd;
    // If the folder exists, it was made just now, or a link has no target.
    if (user.open(folder, O_PATH | O_DIRECTORY))
      return user.open_file(one.path, one.flags, kOutputMode);
    if (timer_clock() >= end)
      return fail(ErrorCode::not_found, one.path + ": the folder " + folder + " does not exist");
    const timespec pause{0, nap * 1'000};
    // tidy-allow(sleep): network file systems report no new folder
    ::nanosleep(&pause, nullptr);
  }
}

// One process with the user's ids opens all files, in this order; only it changes the umask.
// `patience` is for missing folders of output files.
Result<std::vector<Fd>> open_files(const LaunchRequest& request,
                                   const std::vector<WantedFile>& wanted, Duration patience) {
  auto done = as_user(request.owner, [&](const AsUser& user) -> Result<FromUser> {
    if (request.limits.umask) ::umask(*request.limits.umask);
    FromUser out;
    for (const WantedFile& one : wanted) {
      auto fd = open_one(user, one, patience);
      if (!fd) return fail(fd.error().code, one.what + fd.error().message);
      out.files.push_back(std::move(*fd));
    }
    return out;
  });
  if (!done) return tl::unexpected(done.error());
  return std::move(done->files);
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

Result<Fd> open_output(const LaunchRequest& request, const std::string& path, OpenMode mode) {
  ASSIGN(files, open_files(request, {output_file(path, mode)}, Duration{}));
  return std::move(files->front());
}

Result<Fd> open_input(const LaunchRequest& request, const std::string& path) {
  ASSIGN(files, open_files(request, {{"input file ", path, O_RDONLY}}, Duration{}));
  return std::move(files->front());
}

// An allocation only waits for steps: it reads and writes nothing, and makes no file of the user.
Result<StandardFiles> no_files() {
  StandardFiles files;
  files.out.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  files.in.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!files.out || !files.in) return fail_errno(ErrorCode::runtime_failed, "/dev/null");
  return files;
}

Result<StandardFiles> open_standard_files(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.kind == LaunchKind::holder) return no_files();
  const std::string fallback = request.array_task ? "gantry-%A_%a.out" : "gantry-%j.out";
  const auto out = file_of(setup, request, request.std_out, fallback);
  const auto err = file_of(setup, request, request.std_err, request.std_out);
  const auto in = file_of(setup, request, request.std_in, "/dev/null");
  for (const auto* one : {&out, &err, &in})
    if (!*one) return tl::unexpected(one->error());
  std::vector<WantedFile> wanted{output_file(*out, request.open_mode)};
  const bool apart = !request.std_err.empty() && *err != *out;
  if (apart) wanted.push_back(output_file(*err, request.open_mode));
  wanted.push_back({"input file ", *in, O_RDONLY});
  ASSIGN(opened, open_files(request, wanted, kFolderPatience));
  StandardFiles files;
  files.out = std::move(opened->front());
  if (apart) files.err = std::move((*opened)[1]);
  files.in = std::move(opened->back());
  return files;
}

void say_in_output(const LaunchRequest& request, const StandardFiles& files,
                   std::string_view text) {
  write_as_user(request.owner, files.err_fd(), text);
}

}  // namespace gantry::runtime
