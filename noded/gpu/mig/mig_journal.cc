#include "noded/gpu/mig/mig_journal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/codec/codec.h"

namespace gantry::gpu {
namespace {

constexpr std::string_view kPrefix = "mig-";
constexpr std::size_t kMostBytes = 4096;

// Checks the UUID, because it comes from a driver and becomes a part of a path.
Result<std::string> file_of(const std::string& gpu) {
  const bool plain =
      !gpu.empty() && gpu.size() < 100 && std::all_of(gpu.begin(), gpu.end(), [](unsigned char c) {
        return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
      });
  if (!plain) return fail(ErrorCode::malformed, fmt::format("\"{}\" is no UUID of a GPU", gpu));
  return std::string(kPrefix) + gpu;
}

}  // namespace

Result<MigJournal> MigJournal::open(const std::string& dir) {
  TRY(runtime::make_dirs(dir, 0700));
  Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return runtime::fail_errno(ErrorCode::io_error, dir);
  return MigJournal(dir, std::move(fd));
}

Result<void> MigJournal::begin(const MigIntent& intent) const {
  ASSIGN(name, file_of(intent.gpu));
  if (::faccessat(fd_.get(), name->c_str(), F_OK, 0) == 0)
    return fail(ErrorCode::wrong_state,
                fmt::format("{}: an earlier change of its slices is not finished", intent.gpu));
  return runtime::write_whole(fd_.get(), name->c_str(), codec::encode(intent),
                              runtime::Durability::durable);
}

Result<void> MigJournal::done(const std::string& gpu) const {
  ASSIGN(name, file_of(gpu));
  if ((::unlinkat(fd_.get(), name->c_str(), 0) != 0 && errno != ENOENT) || ::fsync(fd_.get()) != 0)
    return runtime::fail_errno(ErrorCode::io_error, dir_ + "/" + *name);
  return {};
}

Result<std::vector<MigIntent>> MigJournal::pending() const {
  std::vector<MigIntent> out;
  for (const std::string& name : runtime::list_dir(dir_)) {
    if (!name.starts_with(kPrefix)) continue;
    const auto bytes = runtime::read_file(dir_ + "/" + name, kMostBytes);
    const auto intent =
        bytes ? codec::decode<MigIntent>(*bytes) : Result<MigIntent>(tl::unexpected(bytes.error()));
    if (intent && name == std::string(kPrefix) + intent->gpu)
      out.push_back(*intent);
    else if (::unlinkat(fd_.get(), name.c_str(), 0) != 0)
      return runtime::fail_errno(ErrorCode::io_error, dir_ + "/" + name);
  }
  return out;
}

}  // namespace gantry::gpu
