#include "noded/machine/landlock.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "noded/machine/files.h"
#include "noded/machine/hardened_rules.h"

namespace gantry::runtime {
namespace {

constexpr auto kCall = [](long number, long a, long b, long c, long d = 0) -> long {
  const long result = ::syscall(number, a, b, c, d);
  return result < 0 ? -errno : result;
};

bool allow(long ruleset, const std::string& path, std::uint64_t rights) {
  const Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) return errno == ENOENT || errno == ENOTDIR;
  return landlock::add(kCall, ruleset, place.get(), rights) == 0;
}

}  // namespace

int landlock_version() {
  return static_cast<int>(std::max(landlock::version(kCall), 0l));
}

bool harden_self() {
  return landlock::harden(kCall, {SYS_openat, SYS_getdents64, SYS_close});
}

bool keep_only(const KeptPlaces& places) {
  const int version = landlock_version();
  if (version < 1) return false;
  const std::uint64_t all = landlock::rights_of(version);
  const Fd ruleset(static_cast<int>(landlock::make(kCall, all)));
  if (!ruleset) return false;
  bool sound = true;
  for (const std::string& path : places.whole) sound = allow(ruleset.get(), path, all) && sound;
  for (const std::string& path : places.read)
    sound = allow(ruleset.get(), path, landlock::kReadFile | landlock::kReadDir) && sound;
  for (const std::string& path : places.removable)
    sound = allow(ruleset.get(), path, landlock::kRemoveFile | landlock::kRemoveDir) && sound;
  if (!sound || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return landlock::restrict_self(kCall, ruleset.get()) == 0;
}

}  // namespace gantry::runtime
