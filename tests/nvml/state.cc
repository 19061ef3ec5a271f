#include "tests/nvml/state.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "tests/nvml/fleet.h"

namespace gantry::fake {
namespace {

constexpr std::uint32_t kMagic = 0x4c4d564e, kVersion = 1;

tl::unexpected<Error> fail_file(const std::string& path) {
  return fail(ErrorCode::io_error, path + ": " + std::strerror(errno));
}

std::size_t bytes_for(std::size_t gpus) {
  return sizeof(State) + (gpus > 0 ? gpus - 1 : 0) * sizeof(GpuState);
}

void init_lock(pthread_mutex_t& lock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

// Makes the file whole or not at all: it gets its name only when it is complete.
Result<void> make(const std::string& path, const Fleet& fleet) {
  const std::string early = path + "." + std::to_string(::getpid());
  const int fd = ::open(early.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return fail_file(early);
  const std::size_t size = bytes_for(fleet.gpus.size());
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(size)) == 0)
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return fail_file(early);
  auto* state = static_cast<State*>(memory);
  state->version = kVersion;
  init_lock(state->lock);
  fill(*state, fleet);
  state->magic = kMagic;
  ::munmap(memory, size);
  const bool linked = ::link(early.c_str(), path.c_str()) == 0 || errno == EEXIST;
  ::unlink(early.c_str());
  if (!linked) return fail_file(path);
  return {};
}

std::uint64_t mix(std::uint64_t x) {  // the step of splitmix64
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

Result<Mapping> Mapping::open_existing(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail_file(path);
  struct stat st {};
  void* memory = MAP_FAILED;
  if (::fstat(fd, &st) == 0 && st.st_size >= static_cast<off_t>(sizeof(State)))
    memory = ::mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return fail_file(path);
  Mapping out(static_cast<State*>(memory), static_cast<std::size_t>(st.st_size));
  if (out->magic != kMagic || out->version != kVersion || bytes_for(out->gpu_count) > out.size_)
    return fail(ErrorCode::malformed, path + " is not of this version of the stand-in driver");
  return out;
}

Result<Mapping> Mapping::open(const std::string& path, const std::string& fleet_path) {
  if (::access(path.c_str(), F_OK) != 0) {
    ASSIGN(fleet, read_fleet(fleet_path));
    TRY(make(path, *fleet));
  }
  return open_existing(path);
}

Mapping::~Mapping() {
  if (state_ != nullptr) ::munmap(state_, size_);
}

Lock::Lock(State& state) : state_(state) {
  if (pthread_mutex_lock(&state_.lock) == EOWNERDEAD) pthread_mutex_consistent(&state_.lock);
}

Lock::~Lock() {
  pthread_mutex_unlock(&state_.lock);
}

void post_event(State& state, const EventState& event) {
  state.events[state.events_written % kMostEvents] = event;
  ++state.events_written;
  __atomic_store_n(&state.events_word, static_cast<std::uint32_t>(state.events_written),
                   __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &state.events_word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wait_for_event(const State& state, std::uint64_t seen, std::uint32_t timeout_ms) {
  const timespec limit{timeout_ms / 1000, static_cast<long>(timeout_ms % 1000) * 1'000'000};
  ::syscall(SYS_futex, &state.events_word, FUTEX_WAIT, static_cast<std::uint32_t>(seen), &limit,
            nullptr, 0);
}

std::string make_uuid(std::string_view prefix, std::uint64_t number) {
  const std::uint64_t a = mix(number), b = mix(a ^ number);
  char text[40];
  std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(a >> 32),
                static_cast<unsigned>(a >> 16) & 0xFFFF,
                (static_cast<unsigned>(a) & 0x0FFF) | 0x5000,
                (static_cast<unsigned>(b >> 48) & 0x3FFF) | 0x8000,
                static_cast<unsigned long long>(b & 0xFFFFFFFFFFFFu));
  return std::string(prefix) + text;
}

}  // namespace gantry::fake
