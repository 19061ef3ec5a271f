#include "ctld/users_program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iterator>

#include "common/auth/users.h"

namespace gantry::ctld {

// The program setpriv changes the ids, because a process with many threads must not do that between
// fork and exec.
Result<std::vector<std::string>> words_as_user(Uid uid, Privileges privileges,
                                               std::vector<std::string> words) {
  if (::geteuid() == uid.value() && uid.value() != 0) return words;
  ASSIGN(user, auth::find_user(uid));
  std::vector<std::string> out{"setpriv",
                               fmt::format("--reuid={}", user->uid.value()),
                               fmt::format("--regid={}", user->gid.value()),
                               "--init-groups",
                               "--inh-caps=-all",
                               "--reset-env"};
  if (privileges == Privileges::never) out.emplace_back("--no-new-privs");
  out.emplace_back("--");
  out.insert(out.end(), std::make_move_iterator(words.begin()),
             std::make_move_iterator(words.end()));
  return out;
}

Result<pid_t> start_words(std::vector<std::string> words, std::optional<int> input,
                          OwnSession session, std::optional<int> output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (input)
    ::posix_spawn_file_actions_adddup2(&files, *input, 0);
  else
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (output)
    ::posix_spawn_file_actions_adddup2(&files, *output, 1);
  else
    ::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addchdir_np(&files, "/");
  ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setsigdefault(&how, &all);
  const int alone = session == OwnSession::yes ? POSIX_SPAWN_SETSID : 0;
  ::posix_spawnattr_setflags(
      &how, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | alone));
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &files, &how, argv.data(), environ);
  ::posix_spawnattr_destroy(&how);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return fail(ErrorCode::io_error, std::strerror(error));
  return pid;
}

std::optional<std::string> failed_ending(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return fmt::format("ended with {}", WEXITSTATUS(status));
  return std::nullopt;
}

}  // namespace gantry::ctld
