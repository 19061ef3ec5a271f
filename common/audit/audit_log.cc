#include "common/audit/audit_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/audit/audit_reader.h"

namespace gantry::audit {
namespace {

Result<void> error(const std::string& path, const char* what) {
  if (errno == ENOSPC || errno == EDQUOT)
    return fail(ErrorCode::out_of_space,
                fmt::format("the audit log cannot be {}, the file system of {} is full: free space "
                            "there and start the controller again",
                            what, path));
  return fail(ErrorCode::io_error,
              fmt::format("the audit log {} cannot be {}: {}", path, what, std::strerror(errno)));
}

// The last bytes of the file, which hold a whole record and more; all of a shorter file.
Result<std::string> read_tail(int file, std::int64_t bytes) {
  constexpr std::int64_t kMost = 1 << 20;
  std::string out(static_cast<std::size_t>(std::min(bytes, kMost)), '\0');
  const std::int64_t from = bytes - static_cast<std::int64_t>(out.size());
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t n =
        ::pread(file, out.data() + done, out.size() - done, from + static_cast<std::int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(ErrorCode::io_error, "it cannot be read");
    done += static_cast<std::size_t>(n);
  }
  return out;
}

std::string file_name(std::uint64_t first) {
  return fmt::format("audit-{:012}.jsonl", first);
}

}  // namespace

Result<AuditLog> AuditLog::open(const std::string& directory, Instant now) {
  AuditLog out(directory);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    const auto failed = error(directory, "made");
    return tl::unexpected(failed.error());
  }
  out.folder_.reset(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!out.folder_) return tl::unexpected(error(directory, "opened").error());
  ASSIGN(files, files_in(directory));
  if (files->empty()) {
    TRY(out.next_file());
    return out;
  }
  TRY(out.open_file(files->back()));
  ASSIGN(cut, out.find_end(*files));
  if (*cut == 0) return out;
  Record record;
  record.time = now;
  record.right = "none";
  record.message = "AuditLog";
  record.outcome = "done";
  record.why = fmt::format("{} bytes of an unfinished record were cut off", *cut);
  TRY(out.add(std::move(record)));
  TRY(out.sync());
  return out;
}

// Reads the last record, after which the chain continues; cuts off anything after it. Returns how
// many bytes were cut off.
Result<std::int64_t> AuditLog::find_end(const std::vector<std::string>& files) {
  const std::string path = directory_ + "/" + files.back();
  const auto text = read_tail(file_.get(), bytes_);
  if (!text) return tl::unexpected(error(path, "read").error());
  const auto feed = text->rfind('\n');
  const std::size_t whole = feed == std::string::npos ? 0 : feed + 1;
  const auto cut = static_cast<std::int64_t>(text->size() - whole);
  if (cut > 0 && ::ftruncate(file_.get(), bytes_ - cut) != 0)
    return tl::unexpected(error(path, "cut").error());
  bytes_ -= cut;
  if (whole == 0) {  // the first record of the file was not finished: the one before has the end
    if (files.size() == 1) return cut;
    const std::vector<std::string> before(files.begin(), files.end() - 1);
    const Fd earlier(::open((directory_ + "/" + before.back()).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat found {};
    if (!earlier || ::fstat(earlier.get(), &found) != 0)
      return tl::unexpected(error(directory_ + "/" + before.back(), "read").error());
    const auto last = read_tail(earlier.get(), found.st_size);
    if (!last) return tl::unexpected(error(directory_ + "/" + before.back(), "read").error());
    TRY(go_on_from(*last, before.back()));
    return cut;
  }
  TRY(go_on_from(text->substr(0, whole), files.back()));
  return cut;
}

Result<void> AuditLog::go_on_from(std::string_view text, const std::string& file) {
  if (!text.empty()) text.remove_suffix(1);
  const auto feed = text.rfind('\n');
  const auto line = read_line(feed == std::string_view::npos ? text : text.substr(feed + 1));
  if (!line)
    return fail(ErrorCode::io_error,
                fmt::format("the last record of the audit log {}/{} {}; `gctl audit verify` says "
                            "where it is whole. Move the directory away to begin a new one.",
                            directory_, file, line.error().message));
  seq_ = line->record.seq;
  head_ = line->hash;
  return {};
}

Result<void> AuditLog::open_file(const std::string& name) {
  const std::string path = directory_ + "/" + name;
  file_.reset(::openat(folder_.get(), name.c_str(),
                       O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat found {};
  if (!file_ || ::fstat(file_.get(), &found) != 0) return error(path, "opened");
  if (!S_ISREG(found.st_mode))
    return fail(ErrorCode::io_error, fmt::format("the audit log {} is no file", path));
  bytes_ = found.st_size;
  return {};
}

Result<void> AuditLog::next_file() {
  if (file_)
    if (auto r = sync(); !r) return r;
  if (auto r = open_file(file_name(seq_ + 1)); !r) return r;
  if (::fsync(folder_.get()) != 0) return error(directory_, "synced");
  return {};
}

Result<void> AuditLog::add(Record record) {
  if (!state_) return state_;
  if (bytes_ >= kFileBytes)
    if (state_ = next_file(); !state_) return state_;
  record.seq = seq_ + 1;
  Line line = line_of(record, head_);
  std::string_view left = line.text;
  while (!left.empty()) {
    const ssize_t n = ::write(file_.get(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return state_ = error(directory_, "written");
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  bytes_ += static_cast<std::int64_t>(line.text.size());
  seq_ = record.seq;
  head_ = std::move(line.hash);
  unsynced_ = true;
  return {};
}

Result<void> AuditLog::sync() {
  if (!state_ || !unsynced_) return state_;
  if (::fdatasync(file_.get()) != 0) return state_ = error(directory_, "synced");
  unsynced_ = false;
  return {};
}

}  // namespace gantry::audit
