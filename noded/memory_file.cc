#include "noded/memory_file.h"
#include "common/fields.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/codec/define.h"
#include "noded/runtime/contact.h"

namespace gantry::node {

namespace {

constexpr const char* kMemoryFile = "memory.msgpack";
constexpr const char* kDaemonLock = "noded.lock";

struct MemoryRecord {
  Epoch epoch{};
  std::optional<Duration> fence_after;
  JobId highest_job{};
  GANTRY_FIELDS(FIELD(1, epoch), FIELD(2, fence_after), FIELD(3, highest_job))
};

Result<Memory> read_memory(const std::string& dir) {
  Memory memory;
  const std::string path = dir + "/" + kMemoryFile;
  if (::access(path.c_str(), F_OK) != 0) return memory;  // there is no file at the first start
  ASSIGN(bytes, runtime::read_file(path));
  const auto record = codec::decode<MemoryRecord>(*bytes);
  if (!record)
    return fail(ErrorCode::malformed, fmt::format("{}: {}", path, record.error().message));
  memory.epoch = record->epoch;
  memory.fence_after = record->fence_after;
  memory.highest_job = record->highest_job;
  if (const auto text = runtime::read_file(dir + "/" + runtime::kContactFile))
    if (const auto contact = runtime::parse_contact(*text)) memory.last_contact = contact->at;
  return memory;
}

}  // namespace

Result<MemoryFile> MemoryFile::open(const std::string& state_dir) {
  TRY(runtime::make_dirs(state_dir, 0711));
  MemoryFile file;
  file.path_ = state_dir;
  file.directory_ = Fd(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.directory_) return runtime::fail_errno(ErrorCode::io_error, state_dir);
  file.lock_ = Fd(::openat(file.directory_.get(), kDaemonLock, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.lock_) return runtime::fail_errno(ErrorCode::io_error, state_dir + "/" + kDaemonLock);
  if (::flock(file.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::wrong_state,
                fmt::format("another gantry-noded uses the state directory {}", state_dir));
  ASSIGN(memory, read_memory(state_dir));
  file.memory_ = *memory;
  file.drop_contact();
  return file;
}

Result<void> MemoryFile::remember(const RememberEpoch& what) {
  memory_.epoch = what.epoch;
  memory_.fence_after = what.fence_after;
  auto kept = write();
  if (kept) drop_contact();
  return kept;
}

Result<void> MemoryFile::remember(const RememberJob& what) {
  memory_.highest_job = what.highest;
  return write();
}

Result<void> MemoryFile::write() {
  return runtime::write_whole(
      directory_.get(), kMemoryFile,
      codec::encode(MemoryRecord{memory_.epoch, memory_.fence_after, memory_.highest_job}),
      runtime::Durability::durable);
}

Result<void> MemoryFile::remember(const RememberContact& what, Instant now) {
  memory_.last_contact = what.at;
  const runtime::Contact contact{what.at, runtime::since_boot() - (now - what.at),
                                 memory_.fence_after.value_or(Duration{})};
  return runtime::write_whole(directory_.get(), runtime::kContactFile,
                              runtime::contact_text(contact), runtime::Durability::none);
}

// Removes the contact file if there is no fencing, so that no shim counts the silence.
void MemoryFile::drop_contact() {
  if (!memory_.fence_after) ::unlinkat(directory_.get(), runtime::kContactFile, 0);
}

}  // namespace gantry::node
