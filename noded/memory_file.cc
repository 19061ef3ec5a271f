#include "noded/memory_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/codec/define.h"

namespace gantry::node {

namespace {

constexpr const char* kMemoryFile = "memory.msgpack";
constexpr const char* kContactFile = "contact";
constexpr const char* kDaemonLock = "noded.lock";

struct MemoryRecord {
  Epoch epoch{};
  std::optional<Duration> fence_after;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "epoch", s.epoch);
    v(2, "fence_after", s.fence_after);
  }
};

Result<Memory> read_memory(const std::string& dir) {
  Memory memory;
  const std::string path = dir + "/" + kMemoryFile;
  if (::access(path.c_str(), F_OK) != 0) return memory;  // the first start
  const auto bytes = runtime::read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto record = codec::decode<MemoryRecord>(*bytes);
  if (!record)
    return fail(ErrorCode::malformed, fmt::format("{}: {}", path, record.error().message));
  memory.epoch = record->epoch;
  memory.fence_after = record->fence_after;
  if (const auto text = runtime::read_file(dir + "/" + kContactFile)) {
    std::int64_t us = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), us);
    if (error == std::errc{} && end != text->data()) memory.last_contact = Instant{us};
  }
  return memory;
}

}  // namespace

Result<MemoryFile> MemoryFile::open(const std::string& state_dir) {
  if (auto made = runtime::make_dirs(state_dir, 0711); !made) return tl::unexpected(made.error());
  MemoryFile file;
  file.path_ = state_dir;
  file.directory_ = runtime::Fd(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.directory_) return runtime::fail_errno(ErrorCode::io_error, state_dir);
  file.lock_ =
      runtime::Fd(::openat(file.directory_.get(), kDaemonLock, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.lock_) return runtime::fail_errno(ErrorCode::io_error, state_dir + "/" + kDaemonLock);
  if (::flock(file.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::wrong_state,
                fmt::format("another gantry-noded uses the state directory {}", state_dir));
  auto memory = read_memory(state_dir);
  if (!memory) return tl::unexpected(memory.error());
  file.memory_ = *memory;
  return file;
}

Result<void> MemoryFile::remember(const RememberEpoch& what) {
  memory_.epoch = what.epoch;
  memory_.fence_after = what.fence_after;
  return runtime::write_whole(directory_.get(), kMemoryFile,
                              codec::encode(MemoryRecord{what.epoch, what.fence_after}),
                              runtime::Durability::durable);
}

Result<void> MemoryFile::remember(const RememberContact& what) {
  memory_.last_contact = what.at;
  return runtime::write_whole(directory_.get(), kContactFile, std::to_string(what.at.us),
                              runtime::Durability::none);
}

}  // namespace gantry::node
