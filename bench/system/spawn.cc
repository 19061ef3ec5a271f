// Starts processes with posix_spawn and waitpid directly, without a shell between.
#include "bench/system/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <ctime>
#include <map>

extern char** environ;  // POSIX defines this.

namespace gantry::bench {
namespace {

pid_t start(const std::vector<std::string>& command, std::size_t number,
            const posix_spawn_file_actions_t& files) {
  std::vector<std::string> words = command;
  for (std::string& word : words)
    if (const auto at = word.find("{}"); at != std::string::npos)
      word.replace(at, 2, std::to_string(number));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  return ::posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ) == 0 ? pid : -1;
}

}  // namespace

double now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

SpawnTimes spawn_runs(const std::vector<std::string>& command, std::size_t count,
                      std::size_t parallel) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (int fd : {0, 1, 2})
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
  SpawnTimes out;
  std::map<pid_t, double> running;
  const double begin = now_ms();
  std::size_t started = 0;
  while (started < count || !running.empty()) {
    if (started < count && running.size() < parallel) {
      const double at = now_ms();
      const pid_t pid = start(command, started++, files);
      if (pid < 0)
        ++out.failed;
      else
        running[pid] = at;
      continue;
    }
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    const auto it = running.find(pid);
    if (it == running.end()) continue;
    out.each_ms.push_back(now_ms() - it->second);
    if (status != 0) ++out.failed;
    running.erase(it);
  }
  out.seconds = (now_ms() - begin) / 1e3;
  std::sort(out.each_ms.begin(), out.each_ms.end());
  ::posix_spawn_file_actions_destroy(&files);
  return out;
}

}  // namespace gantry::bench
